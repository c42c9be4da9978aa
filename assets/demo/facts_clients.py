"""Clients by name, and the systems it runs on: ways to ask, the thought and the answer of every intent.

The form is explained in intents.py.
"""

from intents import intent

URL = "http://127.0.0.1:8000/v1"

CONNECT_VP = """
    {use|connect|set up|configure|hook up|point|link|wire up|plug in|run|integrate|try|get working} @{| with ossrun| with
    it| with this| to ossrun| to my local model| with gpt-oss| to this server| to ossrun serve| with the local model|
    against my server|}; {use|have|get|run} {ossrun|it|this|gpt-oss|the model|the local model} {in|with|from|inside|as a
    backend for|behind|for} @; {make|let|have|get} @ {use|talk to|work with|connect to|speak to|accept} {ossrun|it|the
    model|my local model|this server|gpt-oss|this}
"""
CONNECT_NP = """
    @; @ {support|setup|integration|configuration|settings|config|with ossrun|and ossrun|with gpt-oss|base url|provider}; {a|the} {setup|config|integration} for @
"""
CONNECT_Q = """
    {can|could|may} i {use|connect|run|point|combine} {it|this|ossrun|the model|gpt-oss} {with|in|from|to} @; {can|does|
    will} @ {work|run|connect|talk} {with|to} {it|this|ossrun|the model|my local model|your server}; {does|will} {it|this|
    ossrun} {work|go together|play|be compatible} {with|in} @; {i use|i work with|i code with|we use|i like|my team uses|i
    have} @{, can it use this|, does it work with ossrun|, how do i connect it|, what do i enter|, what base url|, can i
    point it here|}; {what|which} {base url|url|address|endpoint|settings|api key|provider} {does @ need|do i enter in @|
    for @|do i give @|goes into @}; @ {asks for|wants|needs} {a base url|an api key|an openai url|an endpoint|a model
    provider}{, what do i enter|}; is {it|ossrun} compatible with @; @ {instead of|without} {openai|the cloud|chatgpt}{,
    how|}; {free|local} model for @
"""


def client(name, title, words, say, second=None, weight=1.0):
    at = lambda s: s.replace("@", "{" + words + "}")
    intent(
        name,
        think=(
            f"The user wants to connect {title}.",
            second or "ossrun serve speaks the OpenAI API.",
            "The base URL is " + URL + ".",
        ),
        say=say,
        vp=at(CONNECT_VP),
        np=at(CONNECT_NP),
        q=at(CONNECT_Q),
        weight=weight,
    )


def base_url(title):
    return f"Yes. Start `ossrun serve` and give {title} the base URL `{URL}` of an OpenAI provider. Any API key works."


client("cursor", "Cursor", "cursor|the cursor editor|cursor ide|cursor ai|cursor chat", base_url("Cursor"))
client(
    "continuedev",
    "Continue",
    "continue.dev|the continue extension|the continue plugin|continue in vs code|continue dev|the continue vscode"
    " extension|continue for jetbrains",
    base_url("Continue"),
)
client(
    "codex",
    "Codex",
    "codex|codex cli|openai codex|the codex agent|the codex cli",
    f"Run `ossrun launch codex`. By hand: start `ossrun serve` and give Codex the base URL `{URL}`.",
    "The command is ossrun launch codex.",
)
client(
    "claudecode",
    "Claude Code",
    "claude code|claude-code|the claude cli|anthropic's claude code|the claude agent|the anthropic sdk|anthropic's"
    " client",
    "Run `ossrun launch claude`. By hand: start `ossrun serve`, which answers Anthropic's `/v1/messages`, and set"
    " `ANTHROPIC_BASE_URL=http://127.0.0.1:8000`.",
    "The command is ossrun launch claude.",
)
client(
    "opencode",
    "opencode",
    "opencode|open code|the opencode agent|opencode-ai|sst opencode",
    f"Run `ossrun launch opencode`. By hand: start `ossrun serve` and give opencode the base URL `{URL}`.",
    "The command is ossrun launch opencode.",
)
client(
    "openwebui",
    "Open WebUI",
    "open webui|open-webui|openwebui|open web ui|a web ui|librechat|a chat page in the browser|anythingllm|a graphical"
    " chat|a web interface",
    base_url("Open WebUI or another web page"),
)
client(
    "langchain",
    "LangChain",
    "langchain|lang chain|llamaindex|llama index|langgraph|crewai|autogen|the agents sdk|openai agents|haystack|litellm|dspy",
    f"Start `ossrun serve`. In LangChain use `ChatOpenAI(base_url=\"{URL}\", api_key=\"none\")`; other libraries take the"
    " same base URL.",
)
client(
    "curl",
    "curl",
    "curl|wget|postman|httpie|plain http|a plain http request|a raw http request|a curl command|the command line with curl",
    "Start `ossrun serve`, then:\n\n```sh\ncurl http://127.0.0.1:8000/v1/chat/completions -d '{\n"
    "  \"model\": \"gpt-oss-20b\",\n  \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]\n}'\n```",
    "It posts JSON to /v1/chat/completions.",
)
client(
    "ollamaclient",
    "an Ollama client",
    "ollama clients|an ollama client|the ollama python library|my ollama app|ollama's api|apps made for ollama|the"
    " ollama api|programs written for ollama|an app that only knows ollama|the ollama sdk",
    "Yes. `ossrun serve` also answers Ollama's API, `/api/chat` and `/api/generate`: set `OLLAMA_HOST=127.0.0.1:8000`.",
    "ossrun serve answers Ollama's API too.",
)
client(
    "otherclient",
    "an editor or app",
    "vs code|vscode|cline|aider|zed|jetbrains|intellij|neovim|obsidian|n8n|roo code|copilot|goose|home assistant|emacs"
    " gptel|lm studio clients|xcode|pycharm|sublime|jan|raycast|typingmind|msty|chatbox|a discord bot|excel|a slack bot",
    f"Every program that takes an OpenAI base URL works: start `ossrun serve` and enter `{URL}` with any API key.",
)
intent(
    "launch",
    think=("The user wants to start a coding agent.", "The command is ossrun launch.", "It knows codex, claude and opencode."),
    say="Run `ossrun launch codex` (or claude, opencode). It starts the agent with the settings for this server.",
    vp="""
    {start|run|launch|use|try|open|get} {a|my|the} {coding agent|agent|code agent|coding assistant|programming agent|
    agentic coder}{| on my local model| with ossrun| with gpt-oss| against the local server|}; {code|program|vibe code|
    write software} with {an agent|a local agent|gpt-oss as an agent}
    """,
    np="ossrun launch; the launch {command|verb}; {a|my|local} coding {agent|agents|assistant}; agents {for|with} {coding|programming|ossrun}",
    q="{which|what} {coding agents|agents} {work|are supported|can i use|does it start|does it know}; what does ossrun launch do; can {it|ossrun} {start|launch|drive} {a coding agent|agents|an agent}; is there {an agent|a coding agent|agent mode}",
)
intent(
    "endpoint",
    think=("The user wants to chat with another server.", "The flag is --endpoint with a URL.", "Any server with an OpenAI API works."),
    say="Use `ossrun chat --endpoint URL`. It talks to any OpenAI-compatible server, for example vLLM, llama.cpp, ollama or another ossrun.",
    vp="""
    {chat|talk|connect|use the chat|join|speak} {with|to} {a|another|my|the} {remote|other|different|existing|company|
    running|far away} {server|machine|vllm server|ossrun|llama.cpp server|endpoint|ollama server|openai server|gpu box}{|
    over the network| from here| with this chat|}; use {the chat|this chat|ossrun chat} {with|against|on} {openai|vllm|
    llama.cpp|ollama|another server|a remote model|my other machine|a url|the gpu server}; point the chat {at|to} {a url|
    another server|my vllm|a remote machine}
    """,
    np="--endpoint; {a|another|the} {remote|external|other} {server|endpoint|model|machine} {for|in} {the|ossrun} chat; {the|your} chat {with|against|on} {vllm|llama.cpp|ollama|a remote server|another server}",
    q="what does --endpoint do; can {the chat|ossrun chat|it} {use|talk to|connect to|join} {a remote server|another server|vllm|my gpu server|llama.cpp|an ollama server|a server on another machine}; {my|the} {server|model|gpu} {is|runs} on {another machine|a server in the cellar|the office server|a big box}{, can i chat from here|, how do i chat with it|}",
)

RUN_VP = """
    {run|use|install|start|try|get|set up|have} {it|ossrun|this|the model|gpt-oss|20b|it all} on {@}{| at all| too| as well|}
"""
RUN_NP = """
    {@}; {@} {support|version|build|users|compatibility}; {ossrun|it|gpt-oss|a version|a build} {on|for} {@}
"""
RUN_Q = """
    {does|will|can|would} {it|ossrun|this|the model|gpt-oss} {run|work|start|go|be used} {on|with} {@}{| too| at all| as
    well| or not|}; {is|are} {@} {supported|ok|enough|fine|possible|good enough|a problem|usable}; {i have|i own|i've got|
    i only have|i use|i'm on|we use|all i have is|here is} {@}{, does it work|, can i use it|, is that ok|, will it run|,
    enough|, what about me|}; {what about|how about|and|also} {@}; is there {a version|a build|support|an installer} for
    {@}; {works|runs} on {@}
"""


def system(name, title, words, second, third, say, weight=1.0):
    at = lambda s: s.replace("{@}", "{" + words + "}")
    intent(
        name,
        think=(f"The user asks about {title}.", second, third),
        say=say,
        vp=at(RUN_VP),
        np=at(RUN_NP),
        q=at(RUN_Q),
        weight=weight,
    )


system(
    "mac",
    "a Mac",
    "my macbook|a macbook|a mac|macos|my mac|apple silicon|an m1|an m2 air|my m3 mac|an m4|a mac mini|a mac studio|os x|an"
    " imac|apple computers|a macbook pro|a macbook air|my apple laptop|an old intel mac|metal|a mac with 16 gb",
    "It runs on the CPU there, ARM with NEON.",
    "20b wants about 16 GB of memory.",
    "It is built for macOS and runs on the CPU there: Apple silicon by NEON, without Metal. 20b wants about 16 GB of"
    " memory. `ossrun doctor` shows what fits.",
)
system(
    "windows",
    "Windows",
    "windows|windows 11|windows 10|my windows pc|a windows laptop|microsoft windows|wsl|wsl2|a surface|my windows machine|"
    "powershell|win 11|my gaming pc with windows|a windows server|win10",
    "It is built for Windows too.",
    "WSL works like Linux.",
    "It is built for Windows too, and in WSL it runs as on Linux. It was not tried on real Windows yet. `ossrun doctor`"
    " shows what it finds.",
)
system(
    "linux",
    "Linux",
    "linux|ubuntu|debian|fedora|arch|my linux box|a linux server|mint|red hat|alpine|my ubuntu laptop|arch linux|nixos|a"
    " headless server|suse|a linux machine|centos|a vps|a docker container|my steam deck|ubuntu 24.04",
    "Linux is where it runs best.",
    "One program, x86-64 or ARM.",
    "Yes, Linux is where it runs best: one program for x86-64 and ARM. `ossrun doctor` shows what it finds.",
)
system(
    "arm",
    "ARM",
    "arm|a raspberry pi|an arm server|my raspberry pi 5|aarch64|arm64|graviton|an ampere server|a jetson|a snapdragon|an"
    " orange pi|my pi|a chromebook with arm|an arm laptop|a phone|android|termux|a single board computer",
    "ARM with NEON is supported.",
    "20b wants about 16 GB of memory.",
    "ARM is supported with NEON kernels. 20b wants about 16 GB of memory, so small boards can only run the built-in demo"
    " model.",
)
intent(
    "nogpu",
    think=("The user has no GPU.", "It runs on the CPU.", "20b wants about 16 GB of memory."),
    say="Yes, no GPU is needed: it runs on the CPU (AVX2, AVX-512 or NEON). 20b wants about 16 GB of memory. `ossrun bench` measures the speed.",
    vp="{run|use|try|start} {it|ossrun|the model|20b|gpt-oss} {without a gpu|without any graphics card|with no gpu|on integrated graphics|on a computer without a gpu|on an office pc|on onboard graphics|on an old laptop|on a cheap laptop|with only a cpu}",
    np="{no|without a|without} {gpu|graphics card|video card|nvidia}; {integrated|onboard|intel} graphics; {an|my} {old|cheap|office|ten year old|weak} {laptop|pc|computer|desktop}; a {cpu only|gpu-less} machine; avx2; avx-512",
    q="{do|must|would} i {really|} need a {gpu|graphics card|big graphics card|video card|gaming pc}; {i have|i've got|my pc has|there is|my laptop has} no {gpu|graphics card|dedicated graphics|video card|nvidia card}{, does it work|, can i still use it|, is that a problem|, what now|}; {is|will} {my old laptop|an office pc|a normal pc|an i5|a ryzen|my old thinkpad} {enough|ok|sufficient|do}; no gpu {here|at all}{, ok|, possible|}; does it need {a gpu|avx|avx2|avx-512}; only {a cpu|intel graphics|an igpu} here",
)
