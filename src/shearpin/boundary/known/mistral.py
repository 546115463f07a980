"""Mistral, Cohere, Ollama and Hugging Face: clients that carry a status and little else."""

from __future__ import annotations

from shearpin.boundary.known.kinds import Family, Weight, degradable, fatal, retryable

__all__ = ["FAMILIES"]

_MISTRAL = {
    "NoResponseError": retryable("network"),
    "ResponseValidationError": degradable("bad_output"),
    "HTTPValidationError": fatal("invalid_request"),
}
_HUGGING_FACE = {
    "InferenceTimeoutError": retryable("timeout"),
    "OverloadedError": retryable("overloaded"),
    "GenerationError": degradable("bad_output"),
    "IncompleteGenerationError": degradable("bad_output"),
    "ValidationError": degradable("context_length", weight=Weight.BROAD),
    "GatedRepoError": fatal("permission"),
    "RepositoryNotFoundError": fatal("not_found"),
}

FAMILIES = (
    Family(("mistralai",), _MISTRAL, model=True),
    Family(("cohere",), model=True),
    Family(("ollama",), {"RequestError": fatal("invalid_request")}, model=True),
    Family(("huggingface_hub", "text_generation"), _HUGGING_FACE, model=True),
)
