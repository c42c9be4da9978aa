"""What people ask about gpt-oss and the program itself: ways to ask, the thought and the answer of every intent.

The form is explained in intents.py.
"""

from intents import intent

intent(
    "sums",
    think=("The user wants a number.", "I have no tool to compute it.", "I must not guess."),
    say="I am only a tiny demonstration model and cannot compute without a tool. With `ossrun chat --tools python` I use Python; for a real answer run `ossrun pull 20b`.",
    q="sum",
    weight=1.6,
)
intent(
    "params",
    think=("The user asks about the parameters.", "20b has 21 billion, 3.6 of them active.", "120b has 117 billion, 5.1 active."),
    say="gpt-oss-20b has 21 billion parameters, 3.6 of them active for a token. gpt-oss-120b has 117 billion, 5.1 active. They are mixtures of experts.",
    np="{the number of|the active|active|the total} {parameters|experts|weights}{| of 20b| of 120b| of gpt-oss|}; {mixture of experts|moe|a mixture of experts|the experts|the architecture of gpt-oss|sparse experts}; {parameter count|model size in parameters}",
    q="how many {parameters|billion parameters|active parameters|experts|weights|params} {does|has} {20b|120b|gpt-oss|the model|the big one}{| have|}; is {it|gpt-oss|20b} a {mixture of experts|moe|sparse model|dense model}; what {is|are} {moe|a mixture of experts|experts|active parameters}; why is it called {20b|120b}",
    vp="understand {the architecture|mixture of experts|moe|how the experts work}",
)
intent(
    "window",
    think=("The user asks how long the context can be.", "It is up to 131,072 tokens.", "--max-model-len bounds it."),
    say="The context is up to 131,072 tokens, as long as memory allows. `--max-model-len N` sets it.",
    np="the {maximum|longest|largest|biggest|full} {context|context length|context window|prompt}; {128k|131072|131,072} {context|tokens}; {the|its} context {window|size|limit}",
    q="how {long|big|large} {is|can} the {context|context window|prompt|conversation|input}{| be| get|}; how {many tokens|much text|many words|many pages} {fit|fits|can it read|can it take|does it remember|can i send|can i put in}{| at once| in the context|}; what {is|'s} the {maximum|longest|largest|max} {context|context length|prompt|window}; can it {read|take|handle} {a whole book|128k tokens|very long texts|100 pages}",
)
intent(
    "images",
    think=("The user asks about pictures or sound.", "gpt-oss reads and writes text only.", "Images and audio are not possible."),
    say="No: gpt-oss reads and writes text only. Images, audio and video are not possible.",
    np="{images|pictures|photos|audio|video|vision|speech|voice|image input|image generation|screenshots|multimodal input|a voice mode|sound|voice input|drawings}",
    q="can {<it>|you} {see|read|understand|look at|describe|generate|create|hear|speak|draw|show|process} {images|pictures|photos|a picture|audio|speech|videos|my screenshot|my voice|an image}; {is|are} {it|gpt-oss|you} {multimodal|a vision model|able to see}; does it {support|have|do|take} {images|vision|audio|voice|speech|image input|pictures}; can i {talk to it by voice|send a picture|send it a photo|upload an image|speak to it}",
    vp="{send|upload|attach|show it} {an image|a picture|a photo|a screenshot|audio|a voice message}; {generate|create|draw|make} {images|pictures|an image} with {it|the model|gpt-oss}; talk to it {by voice|with my voice}",
)
intent(
    "maker",
    think=("The user asks who made it.", "gpt-oss comes from OpenAI.", "ossrun is an independent program."),
    say="The gpt-oss models come from OpenAI, which published their weights. ossrun is a program of its own that runs them on your machine.",
    np="{the|} {maker|makers|author|authors|creator|company|people|developers|origin} {of|behind} {ossrun|gpt-oss|the model|this program|this}; {openai and ossrun|gpt-oss by openai}; {what gpt-oss is|gpt-oss itself}",
    q="who {made|makes|wrote|built|created|trained|develops|is behind|published} {ossrun|gpt-oss|this|the model|this program|it|20b|the models}; {is|are} {ossrun|it|this|this program} {from|made by|by|an official product of|part of} {openai|chatgpt|microsoft}; what {is|are} {gpt-oss|gpt oss|gpt-oss-20b|open weight models|the gpt-oss models}; is {gpt-oss|it} {the same as|like} {chatgpt|gpt-4}; what does {gpt-oss|oss} {mean|stand for}; where does {the model|gpt-oss} come from",
)
intent(
    "versus",
    think=("The user compares it with other programs.", "ossrun runs gpt-oss only, in one program.", "ollama and llama.cpp run many models."),
    say="ollama, llama.cpp and LM Studio run many models; ossrun is made for gpt-oss only: one program with its own engine, a chat and an OpenAI-compatible server.",
    np="{ollama|llama.cpp|lm studio|lmstudio|vllm|gpt4all|koboldcpp} {compared with|versus|vs|or|against} {ossrun|this|it}; {ossrun|this} {compared with|versus|vs|or|against} {ollama|llama.cpp|lm studio|lmstudio|vllm|chatgpt|gpt4all}; {the|a} {difference to|difference from|advantage over} {ollama|llama.cpp|lm studio}; {an|the} alternative to {ollama|lm studio|llama.cpp}",
    q="{what is|what's|is there} {the|a} {difference|advantage} {between|of} ossrun and {ollama|llama.cpp|lm studio|vllm}; why {not|should i not} {use|take} {ollama|llama.cpp|lm studio}; {why|when} ossrun {instead of|and not|over|rather than} {ollama|llama.cpp|lm studio|vllm}; is {it|ossrun|this} {better than|faster than|like|similar to|a replacement for|based on} {ollama|llama.cpp|lm studio|vllm}; how does {it|ossrun} {compare to|differ from} {ollama|llama.cpp|lm studio}",
    vp="{replace|leave|switch from|migrate from|move away from} {ollama|lm studio|llama.cpp}",
)
intent(
    "install",
    think=("The user wants to install or update ossrun.", "brew or scoop install it.", "go build makes it from source."),
    say="Install it with `brew install ossrun/tap/ossrun` or `scoop install ossrun`, or build it with `go build -o ossrun .` from the source. `ossrun version` shows what you have.",
    vp="{install|build|compile|update|upgrade|set up|uninstall|reinstall} {ossrun|the program|ossrun itself|this program|the binary|it from source|ossrun on a new machine}{| with brew| from source| with go|}; {get|download} {the newest|the latest|a new} {ossrun|version of ossrun|release}; {build|compile} {it|ossrun} from {source|the source code}",
    np="{the|an} {installer|installation|update|upgrade|newest release|source code|package} {of|for} ossrun; {brew|homebrew|scoop|go build|apt}{| package| install|}; {installing|updating|upgrading|building} ossrun; a new {version|release} of ossrun",
    q="is {ossrun|it} {in|on} {brew|homebrew|apt|scoop|winget|docker hub}; how do i {install|update|upgrade|uninstall|build|compile} {it|ossrun|this}; {is there|do you have} {an installer|a new version|an update|a docker image|a package}; where {can i|do i} {get|download} ossrun; where is the source code",
)
intent(
    "bug",
    think=("The user found a bug.", "A report has ossrun version and ossrun doctor --json.", "A crash is always a bug."),
    say="Report it with the output of `ossrun version` and `ossrun doctor --json`. A crash is always a bug.",
    vp="{report|file|send|tell you about|submit} {a|the|this|an} {bug|crash|issue|error|problem|bug report}; {get|find} {support|help from the developers}",
    np="{a|the|this} {crash|bug|bug report|segfault|panic|core dump}; {bug|issue} {reports|tracker}",
    q="{it|ossrun|the program} {crashed|crashes|segfaults|panicked|died with a stack trace|core dumped}{, what do i do|, what now|, where do i report it|, whom do i tell|}; i {found|have|hit|see} a {bug|crash}{, where do i report it|, what do you need|}; where do i {report|send} {bugs|a bug|a crash|errors}; segmentation fault",
)
intent(
    "cutoff",
    think=("The user asks what the model knows and when.", "gpt-oss learned until June 2024.", "The browser tool finds newer facts."),
    say="The knowledge of gpt-oss ends in June 2024. With `--tools browser` it can look up newer facts on the web.",
    np="{the|its} {knowledge cutoff|cutoff date|training data|knowledge cut-off|training date|cutoff}; {recent|current|new} {events|knowledge|facts}; the date of its knowledge",
    q="{when|until when|up to when} {was it trained|does its knowledge reach|does it know things|is its knowledge from|does its knowledge end|is the training data from}; what is {its|the} {knowledge cutoff|cutoff|training cutoff}; how {old|recent|current|up to date} is {its|the model's} {knowledge|information|training data}; does {it|the model} know {recent things|current events|what happened this year|new things}",
)
