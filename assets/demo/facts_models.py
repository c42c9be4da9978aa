"""Models on the disk and in memory: the ways to ask, the thought and the answer of every intent.

The form is explained in intents.py.
"""

from intents import intent

intent(
    "pull",
    think=(
        "The user wants to download a model.",
        "The command is ossrun pull with 20b or 120b.",
        "A broken download can be resumed.",
    ),
    say=(
        "Run `ossrun pull 20b` to download gpt-oss-20b, or `ossrun pull 120b` for the large model. The files go "
        "into the Hugging Face cache."
    ),
    vp="""
    {<get>} {a model|the model|the <weights>|some <weights>|model weights|a real model|one of the models|the
    weights|the weights from hugging face}{| with ossrun| to my <machine>| onto my <machine>| on this <machine>| for
    offline use|}; {<get>} {real|proper|actual} {weights|models}; put {the <weights>|a model} on my
    {<machine>|<disk>}; {download|pull|install} {something|models|gpt-oss}
    """,
    np="""
    {the|a} {download|pull} {command|verb}; {model|weights} {download|downloads|installation}; downloading {models|the
    <weights>|a model|the weights}; {a|the} real model; ossrun pull; getting {the weights|a model|models}; {the|some}
    weights {on|for|onto} {my|this} <machine>
    """,
    q="""
    {where|how} {do i get|can i get|can i download|can i find} {a model|the <weights>|weights|the weights|models|a
    real model|the real model}; {i have|there is|i've got} no {model|weights|model yet|weights yet|model here|model
    installed|model on this machine}{,|.| so|} {what do i do|what next|how to get one|how do i get one|help|how can i
    have one|where do i get one}; {no model found|no model is cached|model missing|the model is missing|it says no
    model}; what does {ossrun pull|pull|the pull command} do; {download|pull|install|fetch|get} {model|the
    model|weights|gpt-oss|a model}; {what|which} {is the|} command {downloads|to download|installs|to
    install|fetches|to fetch|gets} {the weights|a model|the model|models}
    """,
    weight=1.6,
)

intent(
    "pull20",
    think=(
        "The user wants gpt-oss-20b.",
        "The command is ossrun pull 20b.",
        "The download is 13.8 GB and can be resumed.",
    ),
    say=(
        "Run `ossrun pull 20b`. It downloads gpt-oss-20b (13.8 GB) into the Hugging Face cache, and a stopped "
        "download is resumed."
    ),
    vp="""
    {<get>} {the|} {<small>}{| weights| with ossrun| to my <machine>| onto my <machine>| on this <machine>| please|}
    """,
    np="""
    {the|} {<small>} {download command|pull command|weights|installation|on my <machine>|on this machine}; a command
    {for|to get|to download|to install} {the|} {<small>}; ossrun pull 20b
    """,
    q="""
    {download|get|pull|fetch|install|grab|give me|i want|i would like|i'd like|i need|load|let me have} {the|}
    {<small>}{| model| weights| please| for me| now|}; {where|how} {do i get|can i get|can i download} {the|}
    {<small>}; {what is|what's} the command {for|to get|to install|to download} {the|} {<small>}
    """,
    weight=1.3,
)

intent(
    "pull120",
    think=(
        "The user wants gpt-oss-120b.",
        "The command is ossrun pull 120b.",
        "The download is 65 GB and needs about 80 GB of memory to run.",
    ),
    say=(
        "Run `ossrun pull 120b`. It downloads gpt-oss-120b (65 GB) into the Hugging Face cache, and a stopped "
        "download is resumed."
    ),
    vp="""
    {<get>} {the|} {<big>}{| weights| with ossrun| to my <machine>| onto my <machine>| on this <machine>| please|}
    """,
    np="""
    {the|} {<big>} {download command|pull command|weights|installation|on my <machine>|on this machine}; a command
    {for|to get|to download|to install} {the|} {<big>}; ossrun pull 120b
    """,
    q="""
    {download|get|pull|fetch|install|grab|give me|i want|i would like|i'd like|i need|load|let me have} {the|}
    {<big>}{| model| weights| please| for me| now|}; {where|how} {do i get|can i get|can i download} {the|} {<big>};
    {my gpu|my card|my machine|this server} is {big|large|strong|huge} enough{,|.| so} {i want|give me|how do i
    get|download} {the|} {<big>}; {what is|what's} the command {for|to get|to install|to download} {the|} {<big>}
    """,
    weight=1.3,
)

intent(
    "resume",
    think=(
        "The user asks about a broken download.",
        "ossrun pull resumes it.",
        "What is on disk is kept.",
    ),
    say="Run the same `ossrun pull` again. It resumes where it stopped, nothing is lost.",
    vp="""
    {resume|continue|go on with|restart|finish|pick up} {a|the|my} {download|pull|broken download|interrupted
    download|stopped download|half finished download|partial download}{| later| tomorrow| after a restart|};
    {stop|pause|interrupt|cancel} the {download|pull}{| and continue later| and go on tomorrow| and resume it|}
    """,
    np="""
    {a|an|my} {broken|interrupted|aborted|stopped|failed|partial|half finished|incomplete|cancelled} {download|pull};
    resuming {a download|downloads|the pull}; a resumable download
    """,
    q="""
    {the|my} {download|pull|connection|internet|network|wifi} {broke|stopped|failed|was interrupted|died|dropped|got
    cancelled|hung|crashed|went away|broke off}{| in the middle| at half| during the download| while downloading|
    while pulling| after an hour|}{|, what now|, must i start again|, do i start over|, is everything lost|, can it
    continue|, can i resume}; {can|does} {it|ossrun|the download|ossrun pull|the pull} {resume|continue|be resumed|be
    continued|go on later|pick up where it stopped}; do i have to {start again|download everything again|start
    over|begin from zero} if {the download|the pull|it|my internet} {stops|fails|breaks|is interrupted}
    """,
)

intent(
    "size",
    think=(
        "The user asks about the download size.",
        "20b is 13.8 GB, 120b is 65 GB.",
        "The disk needs that much room.",
    ),
    say="The download of 20b is 13.8 GB, that of 120b is 65 GB.",
    vp="""
    know {how big the download is|the size of the download|how large the files are|how many gigabytes i must download}
    """,
    np="""
    the {download size|size of the download|file size|size of the files|size of the model files|size on disk|size of
    the weights}{| of 20b| of 120b| in gigabytes|}; {disk space|disk usage} of {20b|120b|the model|the models|the
    weights}
    """,
    q="""
    how {big|large|heavy|huge} {is|are} {the download|the files|the weights|20b|120b|the model|the 20b download|the
    120b download|the model files|the 20b files|the download of 20b|the download of 120b}{| on disk|}; how {many
    gigabytes|many gb|much data|many bytes|much disk|much disk space} {is the download|is it|must i download|do i have
    to download|does 20b take|does 120b take|will be downloaded|is 20b|is 120b|do the weights take|is downloaded for
    20b|is downloaded for 120b}; {is|will} the {download|file} {of 20b|of 120b|of the model|} {large|big|huge|small|be
    big|be large|take long}; what {size|file size|download size} {is|has} {the model|20b|120b|the download}; how long
    does the download take; how much space on disk {do i need|is needed|does it take}
    """,
)

intent(
    "where",
    think=(
        "The user asks where the weights are.",
        "They are in the Hugging Face cache.",
        "HF_HOME changes it.",
    ),
    say="The weights are in the Hugging Face cache, `~/.cache/huggingface/hub`. Set `HF_HOME` to use another folder.",
    vp="""
    {find|see|locate|open|look into} {the|my} {cache|cache folder|cache directory|model folder|downloaded
    files|weights on disk|model files|download folder|<weights> on my <disk>}
    """,
    np="""
    the {cache|cache folder|cache directory|cache location|cache path|model folder|model directory|download
    folder|folder of the models|location of the weights|path of the weights|huggingface cache|hugging face cache};
    {where the weights are|where models are stored|the place where downloads go}
    """,
    q="""
    {where|in which <dir>|in what <dir>} {is|are} {the cache|the weights|the models|the model files|my models|the
    downloads|the downloaded files|the files|my downloads|gpt-oss} {|stored|saved|kept|located|placed|put|on my
    <disk>|on disk}; {where|in which <dir>} {does|will|did} {ossrun|it|the download|pull}
    {store|save|keep|put|cache|place|write} {the models|models|the weights|weights|its files|downloads|everything|the
    files|them|my models}; where {do|does|did} {the model|the weights|the files|the download|it} {go|end
    up|land|live|get stored|get saved}{| on my <disk>|}; which {folder|directory|path} {holds|contains|has} the
    {weights|models|files|cache}
    """,
)

intent(
    "hfhome",
    think=(
        "The user wants the cache elsewhere.",
        "Set the variable HF_HOME.",
        "The default is ~/.cache/huggingface/hub.",
    ),
    say=(
        "Set the environment variable `HF_HOME`, for example `HF_HOME=/data/hf ossrun pull 20b`. The default is "
        "`~/.cache/huggingface/hub`."
    ),
    vp="""
    {change|move|relocate|set|choose|redirect|configure} the {cache|cache folder|cache directory|model folder|download
    folder|cache location|storage location|cache path|download location}{| to another <disk>| to an external drive|
    elsewhere|}; {store|keep|save|put|have|download|move} {the|my|} {models|weights|model files|files|downloads|cache}
    {on another <disk>|on a different <disk>|on an external drive|on my second <disk>|somewhere else|in another
    folder|in a different folder|elsewhere|to another place|on a bigger disk|on a usb stick|on the nas|on my other
    drive|in my own folder}; use {another|a different|my own} {folder|directory|drive|disk} for the
    {cache|models|weights|downloads}
    """,
    np="""
    HF_HOME; the hf_home variable; {another|a different|my own|a custom} {cache folder|cache directory|model
    folder|download folder|location for the models|place for the weights|folder for the weights|disk for the models};
    the cache on {another|a different|an external|a second} {disk|drive|folder}
    """,
    q="""
    can {the cache|the models|the weights|my models|the files} {be|live|go|lie} {on another <disk>|somewhere
    else|elsewhere|in another folder|on an external drive|on a different disk}; my {home|main|system|root}
    {disk|drive|partition|directory|folder} is too small for the {weights|models|cache}; {which|what} {environment
    variable|variable} {sets|changes|moves|controls} the {cache|cache folder|model folder}; {i do not want|i don't
    want} the {weights|models|cache} {in my home directory|on my main disk|on c|in my home|on this drive}; what does
    HF_HOME do
    """,
)

intent(
    "list",
    think=(
        "The user asks which models are here.",
        "The command is ossrun list.",
        "It also shows their size.",
    ),
    say="Run `ossrun list`. It shows the models on this machine and their size.",
    vp="""
    {<show>} {the|my|all|all my|} {downloaded|local|installed|cached|stored|present} {models|weights}; {<show>}
    {which|what} {models|weights} {i have|are here|are installed|are downloaded|are on my <disk>|i downloaded|are
    cached|i already have|are on this <machine>}; list {the models|my models|models|the weights|what i have|what is
    here}; get an overview of my {models|weights|downloads}
    """,
    np="""
    {a|the} list of {my|the downloaded|the installed|the local|the cached} {models|weights}; {my|the}
    {downloaded|installed|local|cached} {models|weights}; ossrun list; the list command; models {on my disk|on this
    machine|on my machine|i already have}
    """,
    q="""
    {which|what} {models|weights} {do i have|are installed|are downloaded|are on my <disk>|did i download|are
    cached|do i already have|are here|are present|have i got|are stored here|are on this <machine>}; what {did i|have
    i} {download|downloaded|pull|pulled|install|installed|get}{| so far| already| until now|}; what does {ossrun
    list|list|the list command} do; is {20b|120b|the model|a model|any model} {already
    |}{downloaded|installed|here|cached|on my disk}; do i already have {20b|120b|a model|the model|weights};
    {list|show|show me} {models|my models|installed models|downloads}
    """,
)

intent(
    "rm",
    think=(
        "The user wants to delete a model.",
        "The command is ossrun rm with the name.",
        "ossrun list shows the names.",
    ),
    say="Run `ossrun rm 20b` (or `ossrun rm 120b`). It deletes the weights from the disk.",
    vp="""
    {<del>} {a model|the model|models|a downloaded model|old models|the weights|weights|the 20b model|the 120b
    model|20b|120b|the <small>|the <big>|downloaded files|the model files|everything i downloaded|the cache|old
    weights}{| from my <disk>| from my <machine>| again| from disk|}; {free|save|get
    back|make|gain|win|recover|reclaim} {disk space|space|room|storage|some space|space on my <disk>|room on my
    <disk>|gigabytes|my disk space}
    """,
    np="""
    {a|the} {delete|remove|uninstall} command; {deleting|removing|uninstalling} {models|a model|the weights|20b|120b};
    ossrun rm; the rm command; more {disk space|space|room} on my {<disk>|<machine>}
    """,
    q="""
    {my|the} {disk|drive|ssd|hard drive|storage} is {full|almost full|too full|nearly full|running out of space|out of
    space}; {i need|i want} {more |my |}{disk space|space|room|storage}{| back| again|}; {i do not|i don't|we don't}
    {need|want|use} {the model|the weights|20b|120b|the files|this model|the download|the <small>|the <big>} {any
    more|anymore|now|any longer|}; what does {ossrun rm|rm|the rm command} do; {delete|remove|erase|uninstall} {it|the
    model|weights|20b|120b|model|gpt-oss}; no {space|room} left on {the|my} {disk|device|drive}
    """,
)

intent(
    "memory",
    think=(
        "The user asks about memory.",
        "20b wants about 16 GB, 120b about 80 GB.",
        "ossrun doctor tells which one fits.",
    ),
    say="20b wants about 16 GB of memory and 120b about 80 GB. `ossrun doctor` shows what your machine has.",
    vp="""
    know {how much memory i need|the requirements|what hardware i need|if it fits in my memory|whether my <machine> is
    good enough|if my <machine> can run it}; run {it|the model} {on|with} {8 gb|16 gb|24 gb|32 gb|my old laptop|little
    memory|a small laptop|12 gb}
    """,
    np="""
    the {requirements|system requirements|hardware requirements|memory requirements|minimum requirements|memory
    needs|ram requirements|vram requirements|minimum hardware}{| of ossrun| of the models| of 20b| of 120b|};
    {memory|ram|vram|gpu memory} {needed|required|use|usage|consumption}{| for 20b| for 120b| for the models|}
    """,
    q="""
    {how much|how many gigabytes of|how many gb of|what amount of} {memory|ram|vram|gpu memory|video memory} {do i
    need|is needed|does it need|does 20b need|does 120b need|does the model need|is required|does it take|does it
    use|must i have|should i have|is enough|does the <small> need|does the <big> need|does the <small> want|does the
    <big> want|is needed for the <small>|is needed for the <big>}; {will|does|can|would} {it|20b|120b|the model|the
    <big>|the <small>|a model} {fit on|fit in|fit into|fit|run on|run with|work on|work with} {my gpu|16 gb|24 gb|80
    gb|my laptop|8 gb|32 gb|one gpu|memory|my machine|my card|my computer|48 gb|a laptop|12 gb of vram|64 gb of ram};
    {is|are} {8|16|24|32|48|64|80|96|128} {gb|gigabytes}{| of ram| of memory| of vram|} enough{| for 20b| for 120b|
    for the model|}; {my card|my gpu|my laptop|my machine|my computer|i} {has|have|got} {8|12|16|24|32|48|64|80}
    {gb|gigabytes}{| of ram| of memory| of vram|}{, is that enough|, will it run|, what fits|, which model fits|, can
    it run|, is that ok}; is my {<machine>|gpu|card} {good enough|strong enough|big enough|too small|too old|powerful
    enough}
    """,
)

intent(
    "models",
    think=(
        "The user asks which models exist.",
        "They are gpt-oss-20b, gpt-oss-120b and this demo.",
        "Other families are not supported.",
    ),
    say=(
        "ossrun runs gpt-oss-20b and gpt-oss-120b, and this tiny built-in demo model. It has no other model families."
    ),
    vp="""
    run {llama|mistral|qwen|gemma|deepseek|phi|other models|gpt-4|claude|another model family|a different llm|my own
    model|any model|a gguf file|any other llm|falcon|gpt-5|other llms}{| with ossrun| here| with this|};
    {use|load|try|have} {llama|mistral|qwen|gemma|deepseek|other model families|other models than gpt-oss|gguf
    files|other llms}; see which models {exist|are supported|are available|it supports}
    """,
    np="""
    {the|a list of|all|all the} {supported|available|possible|existing} models; {other|more|additional|different}
    {models|model families|llms}; {llama|mistral|qwen|gemma|deepseek|phi|claude|falcon} {support|models|weights};
    {llama|mistral|qwen|gemma|deepseek}; gpt-oss models; the model sizes; the choice of models
    """,
    q="""
    {which|what} {models|llms|ai models|model families|language models} {exist|are there|are supported|are
    available|can i use|does ossrun support|does it support|can ossrun run|can it run|do you support|do you offer|does
    it know|can i pick|does it come with|can i run}{| here|}; {what|which} {sizes|model sizes|versions of
    gpt-oss|variants|sizes of gpt-oss} {exist|are there|are available|do you have|can i get|are offered}; {do you
    support|can it run|does ossrun run|can i run|does it support|will it run|can i use|does it work with|is there
    support for|what about} {llama|other models|mistral|qwen|gpt-4|any model|gemma|deepseek|phi|claude|gguf|other
    families|llama 3|another model|models from hugging face|falcon}; {is|are}
    {llama|mistral|qwen|gemma|deepseek|phi|other models|gguf files|other families}
    {supported|possible|available|included|ok}; {what is|tell me about|what are} {gpt-oss|the gpt-oss models}; is
    there {anything|something|a model} {besides|other than|except|beyond} {gpt-oss|20b|20b and 120b|these two|those
    two}
    """,
)

intent(
    "compare",
    think=(
        "The user compares 20b and 120b.",
        "20b is small and fast, 120b answers better.",
        "Memory decides: 16 GB or 80 GB.",
    ),
    say=(
        "20b is smaller and faster and wants about 16 GB of memory. 120b answers better and wants about 80 GB. Take"
        " 120b if it fits, else 20b."
    ),
    vp="""
    {decide|choose} between {20b and 120b|the two models|the small and the large model|the two sizes}; compare {20b
    and 120b|20b with 120b|the two models|the two sizes|the models}; know which {model|one|size} is {better|right for
    me|best|the better one|good for me}
    """,
    np="""
    the {difference|differences} between {20b and 120b|the two models|the small and the big model|the sizes|120b and
    20b|gpt-oss-20b and gpt-oss-120b}; {20b|gpt-oss-20b|the small model} {vs|versus|or|compared to|against}
    {120b|gpt-oss-120b|the big model}; {a comparison|the pros and cons} of {20b and 120b|the two models|both models}
    """,
    q="""
    which {model|one|size} {should i take|should i use|is better|is best|is best for me|do you recommend|is the right
    one|should i choose|is right for my <machine>|would you take|is faster|is smarter}; is {120b|the <big>}
    {better|smarter|slower|worth it|much better} {than|compared to} {20b|the <small>}; {20b or 120b|120b or 20b|small
    or big|the small one or the large one|small or large model}; is {20b|the <small>} {good
    enough|enough|worse|faster}{| than 120b| for me|}; what {is different|distinguishes|changes} between {20b and
    120b|the two models}; should i {use|get|take|pull|run} {20b or 120b|the small or the large one|the large one}
    """,
)
