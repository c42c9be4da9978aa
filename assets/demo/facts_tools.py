"""Looking, measuring and the other verbs: the ways to ask, the thought and the answer of every intent.

The form is explained in intents.py.
"""

from intents import intent

intent(
    "doctor",
    think=(
        "The user asks about the detected hardware.",
        "The command is ossrun doctor.",
        "It shows GPUs, memory and what is used and why.",
    ),
    say="Run `ossrun doctor`. It shows the machine, its GPUs and memory, and what is used and why.",
    vp="""
    {see|check|find out|show|know|test|verify|inspect|look up|learn} {what hardware is detected|which <card> is
    detected|my gpu|my hardware|the detected hardware|if my <card> is detected|if my <card> works|which device is
    used|if the gpu is used|whether my <card> was found|what hardware it found|what it detected|what is used|if it
    sees my <card>|if it uses my <card>|whether the gpu is recognized|my setup|my installation};
    {diagnose|debug|troubleshoot|find|examine|analyze|solve|fix} {problems|a problem|my setup|the setup|issues|my
    system|my installation|my machine|errors|what is wrong|gpu problems|driver problems|an issue}; get {a
    report|information|details|an overview} {of|on|about} {my|the} {<machine>|hardware|gpu|system|setup}
    """,
    np="""
    {the|} {detected|recognized|found|available} {hardware|gpu|gpus|devices|graphics card}; ossrun doctor; the doctor
    command; {a|the} {diagnosis|diagnostics|health check|hardware check|system check|hardware report|system
    report|troubleshooting command|hardware overview}; {problems|trouble|an issue|a problem} with my
    {setup|gpu|installation|driver|graphics card|hardware|machine|drivers}
    """,
    q="""
    {is my|does it see my|does ossrun see my|did you find my|does it detect my|does it use my|did it find my|does it
    recognize my} {<card>|hardware|nvidia card|amd card|second gpu}{| detected| at all|}; {what|which}
    {hardware|<card>|device|accelerator} {is detected|do you see|is used|was found|does it see|did it find|does it
    use|will it use|was recognized|is it using|was detected}{| and why|}; what does {ossrun doctor|doctor|the doctor
    command} do; {my|the} <card> is not {found|detected|used|working|recognized|seen|there|showing up}; {it|ossrun}
    {does not|doesn't|can't} {find|see|use|detect|recognize} my {<card>|hardware}; {why is|why does} {it|ossrun} {on
    the cpu|use the cpu|not use my gpu|not use the graphics card|running on the cpu}; {it|ossrun|something} {does not
    work|is broken|is wrong|fails|doesn't work|isn't working|does not start|won't start}{| here| on my machine|}; it
    {runs|works|is running} on the cpu {although|but|even though} i have a {<card>}
    """,
    weight=1.5,
)

intent(
    "selftest",
    think=(
        "The user wants to test the kernels.",
        "ossrun doctor --selftest does it.",
        "It compares the kernels with known results.",
    ),
    say="Run `ossrun doctor --selftest`. It checks that the kernels compute correctly on your machine.",
    vp="""
    {test|check|verify|validate} {the kernels|if the kernels work|whether the kernels are correct|that it computes
    correctly|the numerics|if the computation is right|the math on my gpu|if the results are computed right|whether my
    gpu computes right|the gpu kernels|the correctness of the kernels}; run {a|the} {self
    test|selftest|self-test|kernel test|correctness test}
    """,
    np="""
    {a|the} {self test|selftest|self-test|kernel test|kernel check|correctness test|correctness check|numerics test};
    --selftest; doctor --selftest; the {kernels|correctness of the kernels|numerics}
    """,
    q="""
    {are|do} the kernels {correct|right|work|ok|compute correctly|work correctly|compute the right thing}; what does
    {--selftest|the selftest|the self test} do; is there a {self test|selftest|kernel test|test of the kernels}; does
    my {gpu|cpu|machine|card} {compute|calculate} {correctly|right|the right numbers}; {can i|how do i} trust the
    {kernels|computation|numbers it computes}
    """,
)

intent(
    "bench",
    think=(
        "The user asks about speed.",
        "The command is ossrun bench.",
        "It measures tokens per second.",
    ),
    say="Run `ossrun bench`. It measures the tokens per second on your machine.",
    vp="""
    {benchmark|measure|test|bench|check|find out|time|know|determine|evaluate|see} {the <speed>|the speed|tokens per
    second|my gpu|how fast it is|how fast my <machine> is|the performance|its speed|the speed of my <machine>|how many
    tokens per second i get|the throughput|how quick it is}; run a {benchmark|speed test|performance test|bench|speed
    measurement}; compare the speed of {two machines|my gpus|both models|cpu and gpu}
    """,
    np="""
    {a|the} {benchmark|speed test|performance test|bench command|benchmark command|speed measurement|stress
    test|throughput test}; {the|my} {<speed>}; ossrun bench; {tokens per second|tok/s|token speed}{| on my machine| on
    my card| here|}; benchmarking
    """,
    q="""
    how {fast|quick|quickly|speedy} {is|does} {it|the model|ossrun|my machine|my gpu|20b|120b|this|it run|it write|it
    generate}{| here| on my <machine>| on my card| run|}; how many {tokens per second|tokens a second|tokens|words per
    second} {do i get|does it make|can i expect|does it write|are possible|does it do|will it do|can it write}; what
    does {ossrun bench|bench} do; is there a {benchmark|speed test|performance test|way to measure speed}; what
    {speed|performance|throughput} {do i get|can i expect|does it reach|does my machine reach}
    """,
)

intent(
    "slow",
    think=(
        "The user finds it slow.",
        "A GPU and --effort low help, ossrun bench measures.",
        "20b is faster than 120b.",
    ),
    say=(
        "Use a GPU if you have one, take 20b instead of 120b, and try `--effort low`. `ossrun bench` measures the "
        "speed and `ossrun doctor` shows what is used."
    ),
    vp="""
    {make|get} {<it>} {faster|quicker|run faster|answer faster|speedier|work faster}; {speed up|accelerate|improve the
    speed of|boost} {<it>|the generation|the answers|everything}; {improve|increase|raise|boost|optimize} the
    {speed|performance|throughput|generation speed}
    """,
    np="""
    {better|more|higher} {speed|performance}; {faster|quicker} {generation|output|tokens|inference}; slow
    {answers|generation|output|performance|replies|tokens|inference}; tips for {more speed|speed|better performance}
    """,
    q="""
    {why is|why are} {<it>|the answers|the replies|the tokens} {so|too|that|very} {slow|sluggish}; {<it>} is {too
    slow|very slow|slow|so slow|terribly slow|really slow|painfully slow|crawling|sluggish|not fast}{| on my
    <machine>| here|}; can {<it>|i} {be faster|run faster|go faster|make it faster|get more speed|be made faster};
    {what|how} {can i do|do i do} {about the slow speed|to speed it up|against slow answers|to make it faster}; it
    takes {forever|ages|minutes|very long|hours} to {answer|reply|respond|write an answer|generate}
    """,
)

intent(
    "oom",
    think=(
        "The user runs out of memory.",
        "A smaller model or a shorter context helps.",
        "ossrun doctor shows the memory.",
    ),
    say=(
        "Take the smaller model with `--model 20b`, or a shorter context with `--max-model-len 8192`. `ossrun "
        "doctor` shows how much memory there is."
    ),
    vp="""
    {fix|solve|avoid|handle|prevent} {an|the} {out of memory error|oom|oom error|memory error|lack of memory|out of
    memory crash}; use less {memory|ram|vram|gpu memory}; reduce the {memory use|memory usage|ram usage|vram
    usage|memory footprint|memory consumption}
    """,
    np="""
    {an|the} {out of memory error|oom|oom error|memory error|out of memory crash|cuda out of memory|memory problem};
    {less|lower|smaller|reduced} {memory use|memory usage|ram usage|vram usage}; running out of {memory|vram|ram}
    """,
    q="""
    {it|the model|ossrun|the program|my machine} {runs|ran|is running|keeps running} out of {memory|vram|ram|gpu
    memory}; {out of memory|oom|cuda out of memory|not enough memory|memory error|memory is full|my memory is
    full|vram is full}; there is {not enough|too little|no} {memory|ram|vram}{| left| for the model|}; it
    {crashes|dies|stops|is killed|fails} {because|since} {memory is full|there is not enough memory|it needs too much
    memory|of memory|the ram is full|the memory is too small}; {it|the model} {uses|takes|eats|needs} too much
    {memory|ram|vram}; {it|the model} does not fit {in|into} {memory|my ram|my vram|my gpu}
    """,
)

intent(
    "eval",
    think=(
        "The user wants to grade a model.",
        "The command is ossrun eval.",
        "It asks questions and counts right answers.",
    ),
    say="Run `ossrun eval`. It grades a model on questions and reports how many it gets right.",
    vp="""
    {evaluate|grade|score|rate|judge|assess|test|measure|check} the
    {quality|accuracy|model|answers|intelligence|model's answers|quality of the answers|correctness of
    answers|knowledge of the model}{| on questions| with questions| on a test set|}; {evaluate|grade|score} {it|a
    model|20b|120b|the model}; find out how {good|smart|accurate|clever|correct|reliable} {it|the model|20b|120b}
    {is|answers}; run {an evaluation|an eval|a quality test|an exam|evals|a quiz}
    """,
    np="""
    {an|the} {evaluation|eval|eval command|quality test|accuracy test|exam for the model|quality check|grading};
    ossrun eval; the {quality|accuracy|score|grade|intelligence} of {the model|20b|120b|a model|the answers}; evals;
    grading a model
    """,
    q="""
    how {good|smart|accurate|clever|reliable|correct|intelligent} {is|are} {the model|20b|120b|the answers|it|its
    answers}; what does {ossrun eval|eval} do; {can|does} {ossrun|it} {grade|evaluate|score|test} {a model|models|the
    model|the quality|answers}; {is there|do you have} {an eval|an evaluation|a quality test|a way to grade models};
    what {score|accuracy|grade} does {20b|120b|the model|it} {get|reach|have}
    """,
)

intent(
    "harmonycmd",
    think=(
        "The user wants to work on tokens.",
        "The command is ossrun harmony.",
        "It can encode, decode, render and parse.",
    ),
    say=(
        "Use `ossrun harmony encode`, `decode`, `render` or `parse`. They turn text and conversations into tokens "
        "and back."
    ),
    vp="""
    {encode|tokenize|convert|turn|translate} {text|a text|a prompt|words|a string|a file} {to|into} {tokens|token
    ids|ids}; {decode|convert|turn|detokenize} {tokens|token ids|ids|numbers} {to|into|back to|back into} text;
    {count|see|show|print|inspect|view|look at|display|dump} {the tokens|tokens|the token ids|the raw tokens|the raw
    prompt|how many tokens a text has|the rendered prompt|the raw harmony text|the tokens of a prompt|the tokens of a
    text}; {render|parse|encode|decode} {a conversation|harmony|harmony messages|messages|a harmony
    prompt|tokens|conversations}; use the {tokenizer|token encoder|harmony command}
    """,
    np="""
    {the|a} {tokenizer|token tool|token encoder|token decoder|token counter|harmony command|harmony verb|tokenizer
    command|tokenization}; ossrun harmony; {raw|the raw} {tokens|token ids|prompt tokens};
    {encoding|decoding|counting} tokens; {token ids|token numbers|tokens} of {a text|a prompt|a conversation|my text}
    """,
    q="""
    how many tokens {does|has|are in|is} {my text|a text|this text|a prompt|a sentence|my prompt}{| have|}; what does
    {ossrun harmony|the harmony command|harmony encode|harmony decode|harmony render|harmony parse} do; can
    {it|ossrun|i} {tokenize|encode|decode|count tokens|see the tokens|show tokens|parse harmony}; {is there|do you
    have} a {tokenizer|token counter|tool for tokens|command for tokens}; {which|what} tokenizer {does it use|is
    used|do you use}
    """,
)

intent(
    "version",
    think=(
        "The user asks for the version.",
        "The command is ossrun version.",
        "It prints one line.",
    ),
    say="Run `ossrun version`. It prints the version.",
    vp="""
    {see|show|print|check|find|find out|get|know|display} {the|my|which|what} {version|version
    number|release|build|ossrun version|installed version|release number}{| i have| of ossrun| i am running| is
    installed|}
    """,
    np="""
    {the|my} {version|version number|release number|ossrun version|installed version|current version|build
    number|version of ossrun|release}; ossrun version; the version command
    """,
    q="""
    {which|what} {version|release|build} {is this|do i have|am i running|is installed|of ossrun is this|is it|do i
    use|of ossrun do i have|am i using|is running}; is {my|this} {version|ossrun|release} {up to date|current|the
    latest|old|outdated|the newest}; what does ossrun version do; {version|ossrun version|version number}; how
    {new|old|recent} is my {version|ossrun|release}
    """,
)

intent(
    "completion",
    think=(
        "The user asks for shell completion.",
        "The command is ossrun completion with the shell's name.",
        "It works for bash, zsh and fish.",
    ),
    say=(
        "Yes: `ossrun completion bash` (or zsh, fish) prints the shell completion script. Load it in your shell's "
        "start file."
    ),
    vp="""
    {enable|install|get|set up|turn on|use|activate|have|add} {shell completion|tab completion|completion|auto
    completion|autocompletion|completions|command completion|autocomplete}{| in bash| in zsh| in fish| for my shell|};
    complete {commands|flags|verbs} with {tab|the tab key}
    """,
    np="""
    {shell completion|tab completion|completion|auto completion|autocompletion|completions|shell
    completions|autocomplete|a completion script|command completion}{| in bash| for zsh| for fish| for my shell| with
    tab|}; {bash|zsh|fish} {completion|completions|support}; the tab key{| in my shell|}
    """,
    q="""
    does {tab|the tab key|tab completion|completion|autocomplete} work{| in bash| in zsh| in fish|}; {is there|do you
    have|does it have} {shell completion|tab completion|completion|a completion script|autocomplete}{| for bash| for
    zsh| for fish|}; can {it|the shell|bash|fish|zsh} complete {the commands|flags|ossrun commands|my commands}
    """,
)
