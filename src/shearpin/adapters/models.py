"""Other models for an agent that goes round in circles, by the names that the recipe gives them.

Contract: nothing is asked of a model here. A text such as `openai:gpt-5` is made one by LangChain,
once; what cannot be made fails when the guard is put on, not when it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase

from shearpin.errors import ConfigError

if TYPE_CHECKING:
    from shearpin.recipe import Guard

__all__ = ["Model", "in_place_of", "innermost", "is_model", "models_of"]

Model = Runnable[Any, Any]
_WAY = "model:"


def models_of(recipe: Guard) -> Mapping[str, Model]:
    """The models that a loop may go on with.

    Raises:
        ConfigError: `on_loop` names one that is not there, or one is no model.
    """
    way = recipe.on_loop or ""
    if not recipe.models and not way.startswith(_WAY):
        return {}
    if way.startswith(_WAY) and way.removeprefix(_WAY) not in recipe.models:
        known = ", ".join(sorted(recipe.models)) or "none"
        raise ConfigError(
            f"on_loop names the model {way.removeprefix(_WAY)!r}, which models has not (it has "
            f"{known}); give it: models={{{way.removeprefix(_WAY)!r}: ...}}"
        )
    return {name: _model(name, value) for name, value in recipe.models.items()}


def _model(name: str, value: object) -> Model:
    if isinstance(value, str):
        try:
            return _made(value)
        except Exception as error:
            raise ConfigError(
                f"models[{name!r}] = {value!r} cannot be made by init_chat_model: {error}"
            ) from error
    if not is_model(value):
        raise ConfigError(
            f"models[{name!r}] must be a chat model, one with tools bound to it, or a text for "
            f"init_chat_model, not {type(value).__name__}"
        )
    return cast("Model", value)


@lru_cache(maxsize=64)
def _made(text: str) -> Model:
    from langchain.chat_models import init_chat_model

    return cast("Model", init_chat_model(text))


def is_model(value: object) -> bool:
    """Whether an object is a chat model, or one with something bound to it."""
    return isinstance(innermost(value), BaseChatModel)


def innermost(value: object) -> object:
    """What a binding is around; any other object is returned as it is."""
    while isinstance(value, RunnableBindingBase):
        value = cast("RunnableBindingBase[Any, Any]", value).bound
    return value


def in_place_of(own: object, other: Model) -> Model:
    """A model as it stands in for another: with the tools that are bound to that one.

    A model that has something bound to it already is taken as it is.
    """
    tools: object = None
    while isinstance(own, RunnableBindingBase):
        binding = cast("RunnableBindingBase[Any, Any]", own)
        tools = tools or binding.kwargs.get("tools")
        own = binding.bound
    if tools and isinstance(other, BaseChatModel):
        return cast("Model", other.bind_tools(cast("Any", tools)))
    return other
