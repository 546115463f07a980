"""The pure core: facts in, verdicts out. No clock, lock, socket, framework or I/O is imported here."""
