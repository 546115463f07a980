"""The error boundary at work: failed calls are made again, replaced, answered."""
