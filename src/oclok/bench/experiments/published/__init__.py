"""The published scripts' own ways, for repeating the paper's numbers; nothing else uses them."""
