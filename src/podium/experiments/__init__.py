"""The paper's experiments: they use the library and nothing in the library uses them."""
