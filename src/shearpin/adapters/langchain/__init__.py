"""The middleware for agents made by `create_agent`.

* `middleware` - the public class, on `wrap_model_call` and `wrap_tool_call`
* `tenancy` - which run a call of an agent belongs to, where no guarded graph opened one
"""
