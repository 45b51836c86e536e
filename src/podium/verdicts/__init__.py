"""How sure is a difference? The procedures that judge every pair, and what each rests on."""
