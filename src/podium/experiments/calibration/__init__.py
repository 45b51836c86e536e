"""The bench that keeps the verdicts honest: simulated families with known truth, and peers' rules beside ours."""
