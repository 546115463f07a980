"""Budgets at work: what calls cost, held before they are made and settled after them."""
