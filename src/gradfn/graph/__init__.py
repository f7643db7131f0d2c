"""How gradients flow; knows no op."""
