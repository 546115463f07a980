"""The pure core: facts in, verdicts out. It imports no clock, lock, socket, framework or I/O."""
