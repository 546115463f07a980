"""The error boundary: failures become structured results that an agent can reason about."""
