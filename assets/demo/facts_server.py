"""The OpenAI-compatible server: the ways to ask, the thought and the answer of every intent.

The form is explained in intents.py.
"""

from intents import intent

intent(
    "serve",
    think=(
        "The user asks about the server.",
        "The command is ossrun serve.",
        "It speaks the OpenAI API under /v1.",
    ),
    say="Run `ossrun serve --port 8000`. It starts an OpenAI-compatible server at http://127.0.0.1:8000/v1.",
    vp="""
    {<start>} {a|an|the|my own|} {<srv>}{| on my machine| locally| here| on localhost| for my app| with gpt-oss};
    {connect|plug in|hook up|attach|link|integrate} {<prog>}{| to it| with it| to the model| to ossrun|};
    {call|reach|query|access|use|talk to|contact} {the model|it|ossrun|gpt-oss} {over http|over the network|via
    http|from <prog>|through an api|over rest|by http|with http requests|with curl|through http}; serve {an|the}
    {openai api|api|model|openai endpoint|http api}{| locally|}; serve {gpt-oss|the model|it|models}{| over http|};
    let {<prog>} {use|reach|talk to|call|access|ask|query} {it|the model|ossrun|gpt-oss}; make {it|the model|gpt-oss}
    available {to|for} {<prog>}; replace {openai|chatgpt|the openai api|the openai cloud} {in|for} {<prog>}
    """,
    np="""
    {a|an|the|some} {<srv>}{| for <prog>| on localhost| for developers|}; ossrun serve; the serve command; {an http|a
    rest|a web|a programming} interface; {a|an} {<srv>} {i can call|that other programs can call|like openai has|i can
    connect to|compatible with openai}; a drop in replacement for {openai|the openai api}
    """,
    q="""
    {does|can} {ossrun|it|this} {serve|offer|have|provide|run|expose|start} {a|an} {<srv>}; is there {a|an} {<srv>};
    {which|what} command {starts|launches|opens|runs|creates|gives me|brings up} {the|a|an} {<srv>}; what does ossrun
    serve do; can {<prog>} {use|call|reach|talk to|query|connect to|access} {it|the model|ossrun|this}; {<prog>}
    {needs|wants|expects|requires} {a|an} {<srv>}{|, what do i do|, how|, what now};
    {serve|server|api|http|rest|endpoint}
    """,
    weight=2.5,
)

intent(
    "serve_p",
    think=(
        "The user wants the server on port $P.",
        "The command is ossrun serve --port $P.",
        "The address has the same port.",
    ),
    say="Run `ossrun serve --port $P`. The server is then at http://127.0.0.1:$P/v1.",
    vp="""
    {<start>} {a|an|the|} {<srv>} on {port |}$P; {listen|run|serve|start|be reachable} on {port |}$P;
    {change|set|switch|move|put} the {port|server port|listening port|api port} to $P; use {port |}$P {instead|instead
    of 8000|for the server|for the api|rather than 8000}; make {it|the server|the api} {listen on|use|run on|answer
    on} {port |}$P
    """,
    np="""
    {port|the port|server port|a server on|the api on|an endpoint on|the server on port|listening on} $P
    """,
    q="""
    {port |}8000 is {taken|used|busy|blocked|occupied|not free}{,|.| so|} {use|i want|can it use|take|i prefer|how
    about|switch to} {port |}$P{| please| instead}; can {it|the server|the api|ossrun serve} {listen on|use|run
    on|take} {port |}$P; {serve|server|api|listen|port} $P; {the port|port 8000} {is in use|is taken|is already in
    use|does not work}{, |. |, how do i use |, give me |, i want }$P
    """,
    weight=2.5,
)

intent(
    "port",
    think=(
        "The user asks how to set the port.",
        "The flag is --port of ossrun serve.",
        "8000 is the usual one.",
    ),
    say=(
        "Use `ossrun serve --port N`, for example `ossrun serve --port 8080`. The server is then at "
        "http://127.0.0.1:8080/v1."
    ),
    vp="""
    {<change>} {the|a different|another} {port|server port|port number|listening port|tcp port|api port}{| of the
    server| of the api|}; {listen|run|serve|start it} on {another|a different|some other|a custom} port; use
    {another|a different} port
    """,
    np="""
    {the|a|another|a different} {port|port number|server port|port flag|port setting|listening port|tcp port}; --port;
    the port of the {server|api}; port already in use
    """,
    q="""
    {which|what} port {does it use|is used|does the server use|does it listen on|is the default|is open}; what does
    --port do; {port|the port|my port|address} {is |}already in use; {which|what} {flag|option} {changes|sets|is
    for|controls} the port{| of the server| number|}; the port is {taken|busy|blocked|occupied}
    """,
)

intent(
    "host",
    think=(
        "The user wants other machines to reach the server.",
        "The flag is --host 0.0.0.0.",
        "By default only this machine can connect.",
    ),
    say="Run `ossrun serve --host 0.0.0.0`, then other machines can connect. By default only your own machine can.",
    vp="""
    {reach|use|access|call|connect to|open|see|share} the {<srv>} {from|on|with|in} {<others>}; {let|allow} {<others>}
    {use|reach|connect to|access|call} {the|my} {<srv>|model}; {share|expose|open|publish|make} {the|my} {<srv>}
    {with|to|available to|visible to|reachable for|accessible from|public for} {<others>}; {listen|bind|serve} {on|to}
    {all interfaces|0.0.0.0|every interface|all addresses|a different address|another ip|the network|an ip address};
    make the {server|api|endpoint} {public|visible|reachable|available in the network|listen on the network}
    """,
    np="""
    {the|} {host|bind|listen} {flag|address|option|setting}; --host; {remote access|network access|lan access|access
    from <others>}; a server for {<others>}; connections from {<others>}; listening on {all interfaces|the
    network|0.0.0.0}
    """,
    q="""
    can {<others>} {use|reach|connect to|access|call|see} {the|my} {<srv>|model}; {<others>} {cannot|can't|could not}
    {connect|reach it|connect to it|use it|see the server}; {which|what} {address|interface|host|ip} does {it|the
    server} {listen on|bind to|use}; is the {server|api} {visible|reachable|open} {from|in|to} {<others>}; what does
    --host do; my {colleague|friend|team|brother|wife|boss|coworker|phone} {should|wants to|needs to|cannot|would like
    to} {use|reach|connect to} {it|the server|the api|my server}
    """,
)

intent(
    "apikey",
    think=(
        "The user wants a key for the server.",
        "The flag is --api-key-file or --api-key.",
        "Clients send the key as a bearer token.",
    ),
    say="Run `ossrun serve --api-key-file FILE`, or set `OSSRUN_API_KEY`, or use `--api-key K`. Then every request must bring that key.",
    vp="""
    {protect|secure|lock|guard|restrict|close} {the|my} {<srv>}{| with a password| with a key| with a token| with
    authentication|}; {require|set|add|demand|use|define|enforce|configure} {a|an} {api
    key|key|password|token|secret|secret key|access token|authentication|login} {for|on|in front of} {the|my} {<srv>};
    keep {strangers|others|other people|unknown people|everyone else|anybody else} {out of|away from|off} {the|my}
    {<srv>}; {limit|restrict} {who can use|access to} {the|my} {<srv>}; password protect the server
    """,
    np="""
    {authentication|authorization|a password|an api key|a secret|a token|a login|access control|security|a bearer
    token|a key} {for|on} {the|my} {<srv>}; --api-key; the api-key {flag|option|setting}; password protection
    """,
    q="""
    {does|can} the {<srv>} {have|need|use|require|support|ask for} {a password|an api key|authentication|a token|a
    key|a login|credentials}; is the {<srv>} {protected|secure|open to everyone|secured}; what does --api-key do; can
    {anyone|anybody|everybody|strangers|everyone} {use|call|reach|misuse} my {<srv>}; do clients need a
    {key|password|token}
    """,
)

intent(
    "sdk",
    think=(
        "The user wants to use the OpenAI client.",
        "Start ossrun serve and set base_url.",
        "Any api_key works for the local server.",
    ),
    say=(
        "Start `ossrun serve`, then:\n\n```python\nfrom openai import OpenAI\n\n"
        'client = OpenAI(base_url="http://127.0.0.1:8000/v1", api_key="none")\n'
        'answer = client.responses.create(model="gpt-oss-20b", input="Hello")\n'
        "print(answer.output_text)\n```\n\nThe other OpenAI SDKs work the same way."
    ),
    vp="""
    {use|call|query|connect to|reach|access|talk to} {it|ossrun|the server|the api|the model|gpt-oss}
    {from|in|with|through} {python|openai-python|the openai library|the openai client|the openai sdk|the python
    client|the openai package|node|javascript|langchain|typescript|a python script|python code|a notebook|jupyter};
    {point|direct|aim|configure|redirect|switch|connect|set up} {the openai client|the openai library|my python
    script|my client|the sdk|openai-python|my openai code|the python package|langchain|existing openai code}
    {to|at|for} {it|ossrun|the local server|my server|localhost|this server}; set the base {url|address};
    {write|get|see} {python|client} code {for|against|that calls} {ossrun|the server|the api}
    """,
    np="""
    {a|the} {python|openai client|openai sdk|client|code|openai library|javascript|langchain}
    {example|snippet|sample|setup|configuration}; the {base url|base_url|url|client url|api url|server address|server
    url|endpoint url}{| for the client| of the server| for my sdk|}; {the|} {openai library|openai package|openai
    python package|openai sdk|python sdk|python client|openai client}; the {url|address} of the {server|api|endpoint}
    """,
    q="""
    {can i use|does it work with|is it compatible with|does ossrun work with|do you support} {the openai
    library|openai-python|the openai client|the openai sdk|python|the openai package|openai sdks|langchain};
    {what|which} {base_url|base url|url|address|api base|base address} {do i use|should i set|is it|is right|do i
    need|must i give|belongs in my code|has the server|do i enter}{| in python| in my client| in the sdk|};
    {what|which} {api_key|api key} {do i|should i|must i} {use|give|pass|set} {in|to} the {client|sdk|openai
    library|python code}; what is the {url|address} of the {server|api|endpoint}; {python|openai}
    {example|client|library|sdk}
    """,
)

intent(
    "routes",
    think=(
        "The user asks about the API routes.",
        "They are /v1/chat/completions, /v1/responses and /v1/models.",
        "They belong to ossrun serve.",
    ),
    say="`ossrun serve` answers `/v1/chat/completions`, `/v1/responses` and `/v1/models`.",
    vp="""
    {use|call|reach|send requests to} the {responses api|chat completions api|responses endpoint|chat completions
    endpoint|models endpoint|completions route}; {list|see|know|find} {the|all} {routes|endpoints|paths|urls|api
    methods|api calls} {of the server|of the api|it offers|the server has|it supports}; list the models over {the
    api|http}; post to {chat completions|/v1/responses|/v1/chat/completions}
    """,
    np="""
    {the|all|all the} {routes|api routes|paths|api paths|url paths|supported endpoints|api endpoints|http
    endpoints|api methods}{| of the server| of the api|}; the {responses|chat completions|models|completions}
    {api|endpoint|route}; {/v1/responses|/v1/chat/completions|/v1/models|chat/completions}
    """,
    q="""
    {which|what} {routes|endpoints|paths|urls|api calls|apis|openai apis|parts of the openai api|methods} {are
    there|does it have|does the server have|are supported|exist|does it support|are offered|does it answer|can i
    call|does the api offer}; {does|can} {it|the server|ossrun} {support|offer|have|speak|understand|do|implement}
    {the responses api|chat completions|the chat completions api|/v1/responses|/v1/chat/completions|the responses
    endpoint|the models endpoint|the completions api}; is there a {models|responses|chat completions} {endpoint|route}
    """,
)

intent(
    "apieffort",
    think=(
        "The user asks for the effort over the API.",
        "The field is reasoning_effort.",
        "Its values are low, medium and high.",
    ),
    say=(
        'Send `"reasoning_effort": "high"` (or low, medium) in the request. In `/v1/responses` it is `"reasoning": '
        '{"effort": "high"}`.'
    ),
    vp="""
    {set|choose|change|pass|send|give|control|specify|select} the {reasoning effort|effort|reasoning
    level|reasoning|thinking level|thinking effort|amount of thinking} {over the api|in the api|in a request|in my
    request|in the json|per request|in an api request|in an api call|from python|with the sdk|in the openai
    client|over http|through the api|with the api}; make {it|the model} {<think>} {more|less|longer|harder} {over the
    api|in an api call|in my request|from python|through the api|over http}
    """,
    np="""
    {the|} reasoning_effort{| field| parameter|}; the {reasoning effort|effort|thinking level|reasoning level} {over
    the api|in the api|in a request|in my json|in the request body|of a request|for api calls}; the {api|request|json}
    {field|parameter} for {the effort|reasoning|thinking|the reasoning level}
    """,
    q="""
    {which|what} {field|parameter|json field|api field|request field|key in the json} {sets|controls|is
    for|changes|selects} the {effort|reasoning effort|reasoning|thinking|reasoning level}{| in the api| in a
    request|}; does the api {have|support|accept|know} {reasoning effort|effort|reasoning_effort|effort levels}; what
    is reasoning_effort
    """,
)

intent(
    "tools",
    think=(
        "The user asks about tools.",
        "Functions go in the tools field of the request.",
        "The model calls them with JSON arguments.",
    ),
    say=(
        "Yes. Describe your functions in the `tools` field of the API request and the model calls them with JSON "
        "arguments. You send the result back and it answers."
    ),
    vp="""
    {use|add|define|give it|pass|register|provide|enable|offer|connect|describe} {functions|tools|function
    calling|tool calls|my own functions|my functions|custom tools|a function|external tools|tool use}{| over the api|
    in a request| through the api| to the model|}; {let|make|have} {it|the model|the ai} {call|use|run|invoke|execute}
    {functions|tools|my functions|my own functions|my code|a function|external tools|my own tools|a tool}{| over the
    api| through the api|}
    """,
    np="""
    {function calling|tool calling|tool calls|tools|tool use|function calls|functions|custom functions|external
    tools|tool support|my own functions}{| over the api| in the api| with the api|}; the tools field
    """,
    q="""
    {can|could} {you|it|the model|ossrun|the api|gpt-oss} {call|use|run|invoke|execute|handle} {functions|tools|a
    function|my functions|function calling|my own functions|external tools|tool calls}; {does it|does ossrun|do
    you|does the api|does the model} {support|have|offer|know|do|allow} {function calling|tool calls|tools|tool
    use|functions|tool calling}; {is|are} {function calling|tool use|tools|tool calls|functions}
    {supported|possible|available|allowed}
    """,
)
