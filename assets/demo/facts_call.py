"""The browser, python and MCP: ways to ask, the thought and the answer of every intent.

The form is explained in intents.py.
"""

from intents import intent

intent(
    "chattools",
    think=("The user asks about tools in the chat.", "The flag is --tools.", "It takes browser, python, auto or none."),
    say="Use `ossrun chat --tools browser,python`. The model can then search the web and run Python. In the chat `/tools` shows what it may call.",
    vp="""
    {turn on|enable|activate|switch on|allow|use|give it|let it use|get} {tools|the tools|built-in tools|its tools|both
    tools|the built in tools|all tools}{| in the chat| in a conversation|}; {turn off|disable|forbid|block|switch off}
    {tools|the tools|all tools}; {see|list|show} {which|what} tools {it has|are on|it may call|the model can use}
    """,
    np="--tools; /tools; {the|} {built-in|built in|available|possible} tools; the tools {flag|command|option}; {browser and python|python and browser}",
    q="""
    {which|what} tools {are there|does it have|can it use|can the model use|exist|are built in|come with it}{| in the
    chat|}; what does {--tools|/tools|--tools auto} do; can {<it>} use tools{| in the chat| here|}; does it {have|come
    with|support} {tools|any tools|plugins|extensions}; {are|is} {tools|any tool} {on|off|enabled} by default
    """,
)

intent(
    "pythontool",
    think=("The user wants the model to run Python.", "The flag is --tools python.", "The code runs in a sandbox without network."),
    say="Use `ossrun chat --tools python`. The model's Python code runs in a sandbox, without a network.",
    vp="""
    {let|have|make|allow} {<it>} {run|execute|use|write and run} {python|code|python code|scripts|programs|its own code};
    {run|execute} {python|code|python code} {in the chat|with the model|from the chat}; {calculate|compute|do math|do sums|
    crunch numbers|plot|draw plots|make plots|analyze data|analyse a csv} with {python|the python tool|code|the model};
    {enable|turn on|use|activate|get} {the|} {python|python tool|code interpreter|code execution|calculator|python
    interpreter|matplotlib}
    """,
    np="""
    --tools python; {the|a} {python tool|code interpreter|python interpreter|calculator|code runner|python sandbox|jupyter};
    code execution; python {in the chat|code|support}; {exact|correct} {math|arithmetic|sums|calculations}; {plots|pictures|
    charts} {by|from|with} matplotlib
    """,
    q="""
    can {<it>|you} {run|execute|use} {python|code|scripts|a script|python code|programs|numpy|matplotlib}; can {<it>}
    {calculate|compute|do math|do arithmetic|add numbers|count exactly}{| with python| with a tool| correctly|}; is there a
    {calculator|code interpreter|python tool|python interpreter}; {it|the model} {is bad at|cannot do|fails at|gets wrong}
    {math|arithmetic|sums|calculations|numbers|counting}{, what helps|, can it use python|, can i give it python|}; like
    {chatgpt's code interpreter|advanced data analysis|a jupyter notebook}; {can it|does it} {draw|make|plot} {charts|
    plots|graphs|diagrams}
    """,
)

intent(
    "sandbox",
    think=("The user asks where the Python code runs.", "The flag is --python-tool.", "It takes bwrap, podman, docker or unsafe."),
    say="It runs in a sandbox without a network and without your files. `--python-tool` chooses it: bwrap, podman or docker. `unsafe` is no sandbox at all.",
    vp="""
    {choose|change|set|pick|use|install|replace} {the|another|a|docker as the|podman as the|bubblewrap as the} {sandbox|
    python sandbox|container for python}; run {the|its|the model's} {python|code|python code} {in docker|in podman|in a
    container|safely|in bubblewrap|isolated|in a sandbox|without a sandbox}; {protect|save} my {files|machine|system} from
    {its|the model's} code
    """,
    np="--python-tool; {the|a} {python|code} {sandbox|isolation|container}; {bubblewrap|bwrap|podman|docker} {for|as} {the|} {python|sandbox|code}; the unsafe {mode|sandbox|option}; {safety|security} of {running code|the python tool}",
    q="""
    is {it|the python tool|running code|the code|its python} {safe|isolated|sandboxed|dangerous|secure}; can {the|its|the
    model's} {code|python|scripts} {read my files|delete my files|break my machine|harm my computer|use the network|go
    online|escape|reach the internet|see my home}; {what|which} sandbox {is used|does it use|do i need|can i use}; what
    does --python-tool do; {python|the python tool} {says|complains|needs} {bubblewrap|bwrap|a sandbox} is {missing|not
    installed}{, what now|}; {do i need|does it need} docker{| for python|}
    """,
)

intent(
    "browser",
    think=("The user wants the model to search the web.", "The flag is --tools browser.", "EXA_API_KEY, BRAVE_API_KEY or SEARXNG_URL give the search."),
    say="Use `ossrun chat --tools browser`. Set `EXA_API_KEY`, `BRAVE_API_KEY` or `SEARXNG_URL` for the search. The answer cites its sources.",
    vp="""
    {let|have|make|allow} {<it>} {search|browse|use|look things up on|go on|read|surf|google} {the web|the internet|
    online|websites|the net|web pages|a page}; {search|browse} the {web|internet|net}{| with it| in the chat| with the
    model|}; {enable|turn on|use|activate|set up|configure} {the|} {browser|web search|browsing|internet search|browser
    tool|web access|search engine}; {set|use|put|configure} {my|an|the} {exa|brave|searxng|search} {key|api key|server|
    account}; get {current|fresh|today's|live} {news|information|facts|data}{| from the web|}; {see|get|show} {sources|
    citations|links}
    """,
    np="""
    --tools browser; {the|a} {browser|web search|browser tool|search tool|web browser}; {web|internet|online} {search|
    access|browsing}; {exa|brave|searxng}{| search|}; EXA_API_KEY; BRAVE_API_KEY; SEARXNG_URL; --search; {sources|
    citations|footnotes}{| in answers|}; a search {engine|key|api key}
    """,
    q="""
    can {<it>|you} {search|browse|use|access|read|google|open} {the web|the internet|websites|web pages|a website|urls|
    links|online}; does {<it>} have {internet access|web access|a browser|web search|access to the internet}; {which|what}
    search engine{|s} {does it use|can i use|are there|is used|works}; {its|the model's} knowledge is {old|outdated|
    stale}{, can it look things up|, can it search|}; what does --search do; how do i give it {a search key|internet|web
    access}; {where|how} does it {cite|show} {its|} {sources|links}
    """,
)

intent(
    "browserallow",
    think=("The user wants the browser to reach the own network.", "The flag is --browser-allow.", "By default only public addresses are reached."),
    say="Use `--browser-allow 192.168.0.0/16` with your network. By default the browser reaches public addresses only.",
    vp="{let|allow} {the browser|it|the browser tool} {to|} {reach|open|read|access} {my intranet|local pages|our wiki|my network|localhost|private addresses|pages of my network|the intranet}; {open|read} {intranet pages|our internal wiki|local addresses|a page on 192.168.0.5} {with|in} the browser{| tool|}",
    np="--browser-allow; {the intranet|private addresses|local pages|internal pages} {in|for} the browser{| tool|}; {internal|private|local} {pages|addresses|websites}",
    q="{the browser|the browser tool|it} {refuses|cannot open|blocks|won't open} {my intranet|localhost|192.168.1.10|our wiki|internal pages|private addresses}; can the browser {open|reach|see} {our intranet|local pages|my network|internal sites}; what does --browser-allow do",
)

intent(
    "mcpconfig",
    think=("The user wants to use MCP servers.", "The flag is --mcp-config with a file.", "The file has mcpServers, as for Claude Desktop and Cursor."),
    say="Use `ossrun chat --mcp-config mcp.json`. The file has `mcpServers` in the form of Claude Desktop and Cursor. `--tool-server HOST:PORT` names one by its address.",
    vp="""
    {use|add|connect|attach|configure|plug in|set up|load|hook up|bring in} {mcp|an mcp server|mcp servers|my mcp servers|
    mcp tools|my mcp config|the filesystem server|a github mcp server|mcp tools from cursor|my claude desktop config|a tool
    server|external tools|my own tools|third party tools}{| in the chat| to the chat| with ossrun|}; give {<it>} {mcp
    tools|my own tools|external tools|access to mcp}
    """,
    np="""
    --mcp-config; {mcp|mcp servers|mcp tools|mcp support|an mcp server|the model context protocol|an mcp client|mcpServers};
    {the|my} {claude desktop|cursor} {config|mcp config|tools|json}; mcp.json
    """,
    q="""
    {does|can} {<it>} {support|speak|do|use|know|talk to|work with} {mcp|mcp servers|mcp tools|the model context protocol|
    tool servers}; what is mcp; {i have|i use|there is} {an mcp server|mcp servers|an mcp.json|a claude desktop config}{,
    can i use it|, does it work here|, how do i use it|}; what does --mcp-config do; where do {mcp servers|i put my mcp
    config} go; model context protocol
    """,
)

intent(
    "toolserver",
    think=("The user has a tool server at an address.", "The flag is --tool-server.", "It takes HOST:PORT, as vLLM spells it."),
    say="Use `--tool-server HOST:PORT`, for example `ossrun serve --tool-server 127.0.0.1:9001`. Several stand with commas between.",
    vp="{use|connect to|reach|name|add} {a|my|the|an} {tool server|mcp server|tool-server} {at|on|by} {an address|a host and port|127.0.0.1:9001|localhost:8001|its address|a url|port 9001}; {use|pass|give} --tool-server{| like in vllm| as with vllm|}",
    np="--tool-server; {a|the} tool server{| flag| address| at a port|}; --tool-server demo; vllm's tool server",
    q="what does --tool-server do; {my|the} {mcp|tool} server {runs|listens|is} {on|at} {port 9001|localhost:8001|a port|another host}{, how do i use it|, how to connect|}",
)

intent(
    "mcpserve",
    think=("The user wants to offer our tools to other programs.", "The command is ossrun mcp.", "It offers the browser or python over MCP."),
    say="Run `ossrun mcp python` or `ossrun mcp browser`. It offers the tool over MCP to other programs; with `--port 8001` as a server.",
    vp="""
    {offer|give|expose|share|provide|lend|export} {the|your|ossrun's|its|our} {browser|python|tools|python tool|browser
    tool|python sandbox|sandbox} {to|for} {other programs|claude desktop|cursor|vllm|claude|another program|other
    apps|an mcp client|other agents}; {run|start|use} ossrun as an mcp server; use {the|ossrun's} {python sandbox|browser|
    python tool} {from|in} {claude desktop|cursor|claude|vllm|another program|other programs}
    """,
    np="ossrun mcp; ossrun mcp {python|browser}; {the|} mcp {verb|command}; ossrun as {an|a} {mcp server|tool server}; {the|your} {browser|python} {tool|} {for|in} {other programs|claude desktop|vllm|cursor}",
    q="what does ossrun mcp {do|python do|browser do}; can {other programs|claude desktop|cursor|vllm|claude} use {the|your|ossrun's} {browser|python|tools|python tool|sandbox}; {does|can} ossrun {act as|be|run as} {an mcp server|a tool server}",
)

intent(
    "approve",
    think=("The user asks about allowing tool calls.", "The chat asks before a tool of an MCP server runs.", "y is once, a is always, n refuses."),
    say="The chat asks before a tool of an MCP server runs: `y` allows it once, `a` for the rest of the chat, `n` refuses and `N` refuses it for the rest of the chat.",
    vp="{approve|allow|confirm|permit|refuse|deny|forbid|reject|block} {a|the|every|each|one|an mcp} {tool|tool call|call|mcp call|function call|tool of an mcp server}{| once| always| for the whole chat|}; {always|never} {allow|ask for} {a|this} tool",
    np="{the|} {approval|permission|confirmation}{| of tool calls| prompt| for tools| question|}; {allowing|refusing|approving} {tool calls|a tool}",
    q="{does|will} it ask {me|} before {it runs a tool|calling a tool|a tool runs|using mcp tools}; {it|the chat} {keeps asking|asks every time|asks again and again}{| before tools run| for permission| about a tool|}{, can i allow it for good|, how do i stop that|}; what {do|does} {y, a and n|y and n|the letters} mean{| when a tool wants to run|}; can {a tool|it} {run|do something} without {my|} {permission|approval|asking}",
)

intent(
    "schema",
    think=("The user wants answers of a fixed shape.", "The flag is --schema with a JSON Schema file.", "At the port it is response_format."),
    say="Use `ossrun chat --schema FILE` with a JSON Schema: every answer then has that form. At the port it is `response_format` in the request.",
    vp="""
    {force|hold|bind|restrict|constrain|limit} {the|its|every|all} <ans> to {a|my|the} {json schema|schema|fixed form|
    structure|fixed format|shape}; {get|have|produce|ask for} {structured output|structured answers|json that fits a
    schema|answers in a fixed form|json of a given shape|output that follows my schema|valid json by a schema}; use {a|my}
    {json schema|schema file|schema}
    """,
    np="--schema; {a|my|the} {json schema|schema|schema file}; {structured|constrained|guided|schema} {output|outputs|decoding|answers|generation}; response_format; guided json; {a grammar|a fixed output format} for the answer",
    q="{can|does} {<it>} {do|support|follow|know|keep to|give} {structured output|structured outputs|a json schema|json schemas|constrained output|guided decoding|response_format}; the answer {must|has to|should} {fit|match|follow} {a|my} {schema|json schema|structure}; what does --schema do; every answer needs {the same fields|a name and an age|exactly these fields}",
)

intent(
    "maxreasoning",
    think=("The user wants to bound the reasoning.", "The flag is --max-reasoning-tokens.", "0 is no reasoning at all."),
    say="Use `--max-reasoning-tokens N`. After N tokens of reasoning the model must answer; 0 is no reasoning at all.",
    vp="{limit|bound|cap|restrict|cut} {the|its} {reasoning|thinking|thoughts|chain of thought|reasoning tokens}{| to 500 tokens| to n tokens| length|}; {turn off|disable|skip|switch off|avoid|forbid} {the|} {reasoning|thinking|thoughts}{| completely| altogether| entirely|}; {answer|make it answer} without {thinking|reasoning}",
    np="--max-reasoning-tokens; {a|the} {limit|bound|cap|budget} {on|for|of} {the|its} {reasoning|thinking|thoughts}; {no|zero} {reasoning|thinking}; {a|the} {reasoning|thinking} {budget|limit}",
    q="{can|how can} i {limit|turn off|cap|disable|stop} {the|its} {reasoning|thinking}{| completely|}; {it|the model} {thinks|reasons} {forever|without end|for thousands of tokens|endlessly|way too long}{, can i limit that|, how to cap it|}; what does --max-reasoning-tokens do; {no|without} {thinking|reasoning}{| please| at all|}",
)
