"""Reasoning effort and the other flags: the ways to ask, the thought and the answer of every intent.

The form is explained in intents.py.
"""

from intents import intent

intent(
    "effort",
    think=(
        "The user asks about reasoning effort.",
        "The flag is --effort with low, medium or high.",
        "In the chat it is /effort or Shift+Tab.",
    ),
    say=(
        "Use `--effort low`, `--effort medium` or `--effort high`. Low is fast, high thinks longer. In the chat, "
        "`/effort high` or Shift+Tab switches it."
    ),
    vp="""
    {<change>} {the|its} {reasoning effort|reasoning level|effort|thinking effort|reasoning|thinking level|level of
    reasoning|amount of reasoning|thinking depth|thinking time|effort level|amount of thinking}; make {<it>} {<think>}
    {more or less|more|less or more|longer or shorter|harder}{| about my question|}; {<change>} how
    {much|long|hard|deeply} {<it>} {thinks|reasons|ponders}
    """,
    np="""
    {the|} {reasoning effort|effort|effort level|effort levels|effort flag|effort setting|reasoning level|reasoning
    levels|thinking effort|thinking level|depth of thinking|thinking time|amount of reasoning|amount of thinking};
    --effort; low, medium and high; {medium effort|the effort option|a knob for thinking}
    """,
    q="""
    {can|could} {<it>|you} {<think>} {more|longer|harder|more deeply|better|a bit more}; {what is|what does|explain}
    {reasoning effort|the effort flag|effort|the effort setting|--effort|the reasoning level}{| mean| do|};
    {which|what} {effort levels|levels of effort|reasoning levels|levels|effort values} {are there|exist|can i use|do
    you have}; {the|its} <ans> {is|are|seems} {not deep enough|not thought through|too superficial|not clever|badly
    reasoned|too simple}{, can it think more|, let it think|, make it think harder|}; where {is|do i find} the
    {<flag>} for {how much it thinks|reasoning|thinking|the effort}
    """,
    weight=1.4,
)

intent(
    "low",
    think=(
        "The user wants fast answers.",
        "The flag is --effort low.",
        "It thinks less and answers sooner.",
    ),
    say="Use `--effort low`: it thinks only briefly and answers fast, for example `ossrun chat --effort low`.",
    vp="""
    make {<it>} {<think>} {less|shorter|not so long|not so much|more briefly|only a little|very little}{| to be
    faster| so that it is fast|}; get {quick|fast|faster|quicker|rapid|immediate} {answers|replies|responses}{|
    without much thinking| with little reasoning| without reasoning|};
    {reduce|lower|shorten|decrease|minimize|skip|turn off|disable|switch off} the {reasoning|thinking|thinking
    time|thoughts|effort}; use low {effort|reasoning}; answer {quickly|faster} without {thinking|reasoning}
    """,
    np="""
    low {effort|reasoning|reasoning effort}; --effort low; {less|little|short|no} {thinking|reasoning}; {quick|fast}
    answers without {thinking|reasoning|long thoughts}; the {lowest|low|fastest} {effort|level of reasoning}
    """,
    q="""
    {it|the model|this} thinks {too long|too much|forever|for ages|way too long}; can {<it>} {think|reason}
    {less|shorter}; {what is|what does} low effort{| do| mean}; {the|its} {thinking|reasoning} {takes|lasts} {too
    long|too much time|forever|ages}; {i want|give me|i need|i prefer} {fast|quick|short and fast} {answers|replies}{|
    with little thinking| and no long thinking| not deep thoughts|}; {can i|how can i} {disable|turn off|switch off}
    {thinking|reasoning}
    """,
)

intent(
    "high",
    think=(
        "The user wants deep thinking.",
        "The flag is --effort high.",
        "It takes longer and answers better.",
    ),
    say="Use `--effort high`: it thinks longest and answers best, for example `ossrun chat --effort high`.",
    vp="""
    make {<it>} {<think>} {as long as possible|as hard as possible|as much as possible|very hard|very long|most
    deeply|at maximum|to the maximum}; {set|turn|put|use|get|want|have} {the
    |}{maximum|highest|max|strongest|deepest|most|best} {effort|reasoning|thinking|reasoning level}; use high
    {effort|reasoning}; set {effort|reasoning|the effort|the reasoning} to {high|maximum|the highest level|max}; get
    the {best|most careful|deepest|most thorough|smartest} {answers|reasoning|thinking|answer}
    """,
    np="""
    high {effort|reasoning|reasoning effort}; --effort high; the {highest|maximum|deepest|longest|strongest}
    {effort|reasoning|thinking|level of reasoning|effort level}; {deep|very deep|maximal|careful|thorough}
    {thinking|reasoning}
    """,
    q="""
    {what is|what does} high effort{| do| mean}; {which|what} {effort|setting|level} {is best for|gives} {hard
    problems|difficult questions|the best answers|the deepest reasoning}; can {<it>} think {as hard as possible|at the
    highest level|really deeply|for very long}; {i have|this is} a {hard|difficult|tricky|complicated}
    {problem|question|task}{,| and} {it should|let it|make it} think {hard|deeply|long}
    """,
)

intent(
    "effortchat",
    think=(
        "The user wants to switch the effort inside the chat.",
        "/effort or Shift+Tab does it.",
        "Shift+Tab steps through the levels.",
    ),
    say="In the chat, type `/effort high` (or low, medium), or press Shift+Tab to switch.",
    vp="""
    {change|switch|set|toggle|adjust|raise|lower|cycle} the {effort|reasoning effort|reasoning
    level|reasoning|thinking level|thinking effort|effort level} {in the chat|inside the chat|while chatting|during a
    chat|in a running chat|from within the chat|in the chat window|with a key|without leaving the chat|in the middle
    of a chat|by a shortcut|in the tui|during a conversation}
    """,
    np="""
    {a|the} {key|shortcut|hotkey|slash command|chat command} {for|to switch|to change|to set} the {effort|reasoning
    effort|reasoning level|thinking level|reasoning}; the effort {in the chat|inside the chat|key|shortcut|while
    chatting}; /effort
    """,
    q="""
    {which|what} {key|shortcut|hotkey|slash command|chat command} {changes|switches|sets|toggles|controls|is for} the
    {effort|reasoning|reasoning effort|reasoning level|thinking level}{| in the chat| while chatting|}; what does
    {shift tab|shift+tab|/effort} do; can i {change|switch} {effort|the effort|the reasoning level} {while
    chatting|in the chat|during the conversation|without restarting|inside the chat}
    """,
)

intent(
    "device",
    think=(
        "The user chooses between CPU and GPU.",
        "The flag is --device with cpu, gpu or auto.",
        "auto takes the best one.",
    ),
    say="Use `--device cpu`, `--device gpu` or `--device auto`. Auto takes the best device.",
    vp="""
    {choose|pick|select|decide|switch|change|set|toggle} {between {cpu and gpu|gpu and cpu|the cpu and the
    gpu|processor and graphics card}|the device|the compute device|where it runs|what it runs on|the hardware it
    uses}; {force|make|let} {<it>} {to use|use|run on|to run on} the {gpu|graphics card|video card}; {use|run it
    on|run on|compute on|work on} {the gpu|the graphics card|my graphics card}{| instead of the cpu| not the cpu|}
    """,
    np="""
    the {device|compute device} {flag|option|setting|choice}; --device; --device {gpu|auto}; {cpu or gpu|gpu or
    cpu|gpu mode|the choice between cpu and gpu}
    """,
    q="""
    {cpu or gpu|gpu or cpu}; what does --device do; {which|what} {flag|option} {selects|sets|chooses|picks} {the
    device|cpu or gpu|the gpu|the processor}; can i choose {the device|where it runs|cpu or gpu|between the processor
    and the graphics card}
    """,
)

intent(
    "cpu",
    think=(
        "The user wants to run on the CPU only.",
        "The flag is --device cpu.",
        "It is slower than a GPU.",
    ),
    say="Use `--device cpu`, for example `ossrun chat --device cpu`. The GPU is then left alone.",
    vp="""
    {run|use|work|compute|start it|stay} {only |just |}{on|with|using} {the|my} {cpu|processor}{| only| alone| instead
    of the gpu| without the gpu|}; {disable|ignore|avoid|turn off|switch off|not use|skip|leave alone|free|spare|keep
    off} {the|my} {gpu|graphics card|video card|card}; force {cpu mode|the cpu|it onto the cpu|it to use the cpu|the
    processor}; use {cpu|cpu only|only the cpu|the cpu only|nothing but the cpu}; keep {my gpu|the gpu|my graphics
    card|the card} {free|for games|for other things}
    """,
    np="""
    {cpu only|cpu} {mode|use|inference}; --device cpu; a way {around the gpu|to avoid the gpu|without using the gpu};
    running {on the processor only|on cpu only|without using my gpu}
    """,
    q="""
    {it|ossrun} should not {use|touch|take} {my|the} {gpu|graphics card|card|video card}; can {<it>} leave {my|the}
    {gpu|graphics card} {alone|free}; {i do not|i don't} want {it|ossrun|the model} {on|to touch|to run on|on my|to
    take} {my|the} {gpu|graphics card}; what does --device cpu do; {how to|can i} {run|force} {it on |}the
    {cpu|processor}
    """,
)

intent(
    "gpu",
    think=(
        "The user chooses GPUs by number.",
        "The flag is --gpu.",
        "The numbers are those of ossrun doctor.",
    ),
    say="Use `--gpu` with the numbers, for example `--gpu 0` or `--gpu 0,1`. `ossrun doctor` shows the numbers.",
    vp="""
    {choose|select|pick|specify|set|name|decide} {which|what} {gpu|graphics card|card|gpus|cards|video card} {to
    use|it uses|is used|it takes|it runs on|should be used}; {use|run on|take|pick|select|choose|employ}
    {both|two|several|all|multiple|the second|the first|one of my|only the second|only the first|only one of my|a
    certain|the other|four|more than one} {<card>s|gpus|cards|gpu|card|graphics cards|graphics card|video cards};
    {split|spread|share} {it|the model|the work} {over|across|between} {two|several|both|my|all|multiple}
    {gpus|cards|graphics cards}
    """,
    np="""
    the gpu {number|index|flag|choice|selection}; --gpu; --gpu 0,1; {two|several|multiple|both|many} {gpus|graphics
    cards|cards}{| in one machine| at once|}; {the|my} {second|first|other|third} {gpu|graphics card|card}; multi gpu;
    gpu selection
    """,
    q="""
    {i have|we have|there are|my machine has} {two|three|four|several|multiple|2|4|8} {gpus|graphics cards|cards|video
    cards}{,| and|.} {which one is used|how do i pick one|how do i use both|can it use all|how to choose|i want to use
    the second|use only one|can i select one}; what does --gpu do; can {<it>} use {two|both|several|multiple|all}
    {gpus|cards|my cards|of my gpus|graphics cards}; which {gpu|card} {is used|does it take} if i have {two|several}
    """,
)

intent(
    "threads",
    think=(
        "The user asks about CPU threads.",
        "The flag is --threads.",
        "By default all cores are used.",
    ),
    say="Use `--threads N`, for example `--threads 4`. It sets how many CPU threads are used.",
    vp="""
    {<change>|limit|restrict|cap} the {number of|count of|} {threads|cores|cpu threads|cpu cores|processor cores|cpu
    usage|cpu load|processor load|worker threads}{| it uses| it takes|}; use {fewer|more|all|only 4|only two|half of
    the|less|8|only some} {cores|threads|cpu cores|cpu threads|of my cores|cpu}; leave some {cores|cpu|processor time}
    {free|for other programs|for other work}
    """,
    np="""
    the {number of threads|thread count|number of cores|cpu threads|core count|threads flag|threads option|cpu
    usage|cpu load}; --threads; {fewer|more} {threads|cores}; {a limit|a cap} {on|for} {the cpu|cpu
    cores|threads|cores|cpu usage}
    """,
    q="""
    how many {threads|cores|cpu cores|cpu threads} {does it use|are used|can i use|should i use|will it take};
    {it|ossrun|the program} {uses|takes|eats|occupies|blocks|hogs} {all my cores|all cores|too much cpu|100 percent
    cpu|all of my cpu|every core|too many threads|the whole processor}; what does --threads do; my {<machine>|fan|pc}
    gets {too hot|loud|slow} because all cores {work|are busy|are used}
    """,
)

intent(
    "context",
    think=(
        "The user asks about the context length.",
        "The flag is --max-model-len.",
        "A longer context takes more memory.",
    ),
    say=(
        "Use `--max-model-len N`, for example `--max-model-len 32768`. It sets the context length, and longer needs"
        " more memory."
    ),
    vp="""
    {<change>|extend|enlarge|shorten|grow|limit} the {context|context length|context window|context size|maximum
    context|window size|number of context tokens|model length|prompt length limit}{| of the model|}; {use|give
    it|process|read|paste|feed it|work with|handle} {long|longer|very long|big|large|huge|entire}
    {documents|files|texts|prompts|books|conversations|inputs|chats}; make it remember {more|a longer text|longer
    chats|long documents}; fit more {text|tokens} {in|into the context}
    """,
    np="""
    the {context length|context window|context size|maximum context|context limit|maximum prompt length|context|window
    size}; --max-model-len; {a|} {longer|larger|bigger|smaller|shorter|huge} context{| window| length|}; {long|very
    long} {documents|prompts|inputs|texts}; max model len
    """,
    q="""
    how {long|big|large} {is|can} the {context|context window|prompt}{| be| get|}; how many tokens {fit in|can i put
    in|fit into|does it read in} {the context|the prompt|the window|one prompt}; what does --max-model-len do;
    {my|the} {prompt|text|document|file|input|conversation} is too {long|big|large}{| for it| for the context| for the
    model|}; it {forgets|loses} the {beginning|start} of {a long chat|the text|the document|long conversations};
    {context|context length|prompt} {exceeded|too long|overflow}
    """,
)

intent(
    "temperature",
    think=(
        "The user asks about the temperature.",
        "The flag is --temperature.",
        "0 always takes the likeliest word.",
    ),
    say=(
        "Use `--temperature T`, for example `--temperature 0.2`. Lower is calmer, and 0 always takes the likeliest "
        "token."
    ),
    vp="""
    {<change>} {the|a|} {temperature|sampling temperature|randomness|creativity|temp|temperature setting|temperature
    of the sampling|sampling}; make {<it>|the <ans>} {more creative|less random|more random|more deterministic|less
    creative|calmer|wilder|more focused|less wild|more predictable|less chaotic|more boring|crazier}
    """,
    np="""
    the {temperature|sampling temperature|randomness|creativity|temperature flag|temperature setting|temperature
    option|sampling settings|sampling parameters|temp}{| of the sampling| of the model| of the output|};
    --temperature; temperature {0|1|0.5|0.7|zero}; {more|less} {randomness|creativity|random output|creative output};
    greedy {sampling|decoding}
    """,
    q="""
    {the|its} <ans> {is|are} too {random|creative|wild|boring|chaotic|crazy|predictable|unpredictable|dull}; what does
    --temperature do; {which|what} temperature {is used|is the default|should i use|does it use|is set}; can i
    {set|change|lower|raise} {the temperature|temperature|the randomness}; how {random|creative} is {it|the output};
    what is the sampling temperature
    """,
)

intent(
    "topp",
    think=(
        "The user asks about top-p.",
        "The flag is --top-p.",
        "It keeps only the likeliest tokens.",
    ),
    say="Use `--top-p P`, for example `--top-p 0.9`. It samples only from the likeliest tokens.",
    vp="""
    {<change>|use|enable|do} {top-p|top p|nucleus sampling|top_p|the top-p value|the top p value|nucleus|the nucleus};
    {cut off|drop|ignore|exclude} unlikely {tokens|words}; sample only {likely|the likeliest|probable} {tokens|words}
    """,
    np="""
    {top-p|top p|top_p|nucleus sampling|the nucleus|--top-p|the top-p flag|the top p option|top-p sampling|a nucleus
    cutoff|the top p setting}
    """,
    q="""
    what {is|does} {top-p|top p|top_p|--top-p|nucleus sampling}{| do| mean|}; does it {have|support|know|offer}
    {top-p|top p|nucleus sampling|top_p}; {which|what} {flag|option} is for {top p|top-p|nucleus sampling}; how do i
    {set|change|use} {top-p|top p}
    """,
)

intent(
    "seed",
    think=(
        "The user wants the same text again.",
        "The flag is --seed.",
        "The same seed gives the same text.",
    ),
    say="Use `--seed N`, for example `--seed 42`. The same seed gives the same text.",
    vp="""
    {get|have|produce|obtain|see} the same {<ans>} {again|every time|each time|twice|always|on each run|with every
    run|all the time}; make {it|the <ans>|the results|runs|my tests|the model}
    {reproducible|deterministic|repeatable|the same every time|stable|identical|always the same}; {<change>|fix|use}
    {a|the} {seed|random seed|seed value|random number seed|sampling seed}; {repeat|reproduce|replay} {an answer|a
    result|a run|the same text|an earlier answer|results|my results}
    """,
    np="""
    {the|a|a fixed|the random} {seed|random seed|seed flag|seed value|seed option}; --seed;
    {reproducible|repeatable|identical|deterministic|the same|stable}
    {results|output|answers|runs|text|replies|responses}; reproducibility
    """,
    q="""
    why {is|are} the <ans> {different|not the same|never the same} {each time|every time|on each run|again}; what does
    --seed do; can {<it>} give the same {<ans>} {twice|again|every time|always}; how do i {reproduce|repeat} {a
    result|an answer|it}; every {run|time|try} {gives|i get} {a different|another} <ans>
    """,
)

intent(
    "maxtokens",
    think=(
        "The user wants to limit the answer.",
        "The flag is --max-tokens.",
        "The answer ends at that many tokens.",
    ),
    say="Use `--max-tokens N`, for example `--max-tokens 200`. The answer ends there.",
    vp="""
    {limit|cap|restrict|shorten|bound|cut|reduce|<change>} the {length|size|number of tokens|token count|maximum
    length|amount|number of words} of {the|an|its|each} {<ans>}; {limit|cap|restrict|shorten|bound|cut} {the|its|an}
    {<ans>}{| length| to 100 tokens| to 200 tokens| after 50 tokens|}; get {shorter|short|not so long|smaller}
    {<ans>}; make {the|its} <ans> {shorter|not so long|short|end earlier|end after 100 tokens}; stop it after
    {100|200|50|500} tokens
    """,
    np="""
    {the|a} {maximum|max|limit|cap|upper limit} {length|of tokens|for the output|on the answer length|for the number
    of tokens|number of output tokens|on output tokens|for the reply length}; --max-tokens; {shorter|short} {<ans>};
    {the|a} {output limit|token limit|length limit|answer length|maximum answer length|max tokens}; max tokens
    """,
    q="""
    {the|its|your} {answers|replies|responses|outputs|texts} are {too long|much too long|endless|too wordy|too big|way
    longer than i need}; what does --max-tokens do; how {long|many tokens} can {an answer|the answer|a reply|the
    output} {be|have|get}; can i {limit|cap|restrict} {how much it writes|how many tokens it writes|the answer|how
    long it answers}
    """,
)

intent(
    "system",
    think=(
        "The user wants own instructions.",
        "The flag is --system.",
        "The text goes before the conversation.",
    ),
    say='Use `--system TEXT`, for example `ossrun chat --system "Answer in French."`. In the chat it is `/system TEXT`.',
    vp="""
    {set|give|give it|add|write|use|pass|change|define|provide|specify|put in} {a|the|my|my own|some|custom} {system
    prompt|system message|instructions|persona|system text|role|custom instructions|standing
    instructions|rules|character|own system prompt|personality}; {make|have|let} {<it>} {always
    |}{speak|talk|answer|behave|act|write|reply} {like a pirate|as a teacher|in german|in french|politely|like a
    poet|in another language|like a robot|in rhymes|in a certain style|as an expert|like a lawyer}{| all the time|};
    tell {<it>} {how to behave|what role to play|who it should be|to always be polite|to always answer in spanish|what
    character it has}; give {it|the model|the assistant} {a personality|a role|a character|instructions|rules}
    """,
    np="""
    {the|a|my own|a custom} {system prompt|system message|persona|instructions|personality|system text|system
    flag|role}; --system; {own|custom|standing|general} {instructions|rules}{| for the model| for it|}
    """,
    q="""
    where {do|can} i {put|write|set|give|enter} {the system prompt|my instructions|a system prompt|instructions|my own
    rules|the persona|custom instructions}; what does --system do; can it {play a role|have a persona|follow my
    rules|act as a teacher|always answer in german|have a different personality|pretend to be someone}; does it
    {have|support|take} {a system prompt|system prompts|custom instructions}
    """,
)

intent(
    "json",
    think=(
        "The user wants JSON output.",
        "The flag is --json.",
        "It works for chat, list, doctor and bench.",
    ),
    say='Add `--json`, for example `ossrun chat --json "question"`. The output is then JSON for programs.',
    vp="""
    {get|have|print|receive|produce|output|see|write} {the|an|} {<ans>|data|everything} {as|in} {json|machine readable
    form|a format for programs|structured form|a structured format|parseable form}; {get|have|print|produce|use}
    {json|machine readable|structured|parseable} {output|results|data|text}; {parse|process} the
    {output|result|answer} {in|with} {a script|a program|jq|python|my program}; switch the output {format |}to json
    """,
    np="""
    {json|machine readable|structured|parseable} {output|format|results|data|mode|answers|form}; --json; {output|an
    output|results} {in json|for programs|for scripts|as json|for jq}; the json {flag|option|switch}; output for {jq|a
    script|other programs}
    """,
    q="""
    can {it|the output|the answer|ossrun} {be|print|output|write|give|return} {json|as json|in json|structured
    data|machine readable}; what does --json do; is there {json|machine readable|structured} output; {my|a}
    {script|program} {must|has to|should|needs to} {read|parse|process|understand} the {output|result|answer}; does it
    {support|have|do} json{| output|}
    """,
)

intent(
    "configfile",
    think=(
        "The user asks about the config file.",
        "It is ~/.config/ossrun/config.yaml.",
        "It holds any flag as a line flag: value.",
    ),
    say=(
        "Put them in `~/.config/ossrun/config.yaml`. It holds any flag as a line `flag: value`, such as `effort: "
        "high`."
    ),
    vp="""
    {save|store|keep|remember|make permanent|persist|write down|set once} {the|my|all my|}
    {settings|flags|options|preferences|defaults|configuration|command line flags}{| in a file| for next time|
    permanently| for ever|}; {set|change|define|configure} {a default|defaults|the defaults|default values|permanent
    settings|the default effort|settings permanently}; {find|edit|open|write|create|change} {the|a|my} {config|config
    file|configuration|configuration file|settings file|yaml file|preferences}; avoid {typing|writing|repeating} {the
    flags|all options|the same flags}{| every time| each time| again and again|}
    """,
    np="""
    {the|a|my} {config file|configuration file|settings file|config|yaml file|preferences
    file|configuration|config.yaml|default settings|permanent settings}; {permanent|persistent|default|saved}
    {settings|flags|options}; the {location|path|place|format|name} of the {config file|configuration|settings}
    """,
    q="""
    where {is|are|do i put|do i find|does it keep|lies} {the config|the config file|the configuration|the settings|my
    settings|the configuration file|config.yaml|the preferences|the defaults}; is there a {config|config
    file|configuration file|settings file|way to save flags|file for settings}; {must|do} i
    {type|write|give|repeat|enter} {all|the|these} {flags|options|settings|arguments} {every time|each time|again and
    again|always}; how does the config file look; what {goes|belongs|is} in the config file; can {it|ossrun}
    {remember|save|keep} my {settings|flags|options|preferences}
    """,
)

intent(
    "config",
    think=(
        "The user wants another config file.",
        "The flag is --config.",
        "The usual one is ~/.config/ossrun/config.yaml.",
    ),
    say=(
        "Use `--config FILE`, for example `ossrun serve --config work.yaml`. The usual file is "
        "`~/.config/ossrun/config.yaml`."
    ),
    vp="""
    {use|load|read|take|give it|pass|specify|choose|point to} {another|a different|my own|an alternative|a second|some
    other|a custom|a special|a separate} {config|config file|configuration|configuration file|settings file|yaml
    file|yaml}; {change|set} the {path|location|name} of the {config|config file|configuration file|settings file};
    have {several|two|different|multiple} {config files|configurations|settings files}
    """,
    np="""
    {another|a different|an alternative|my own|a second|a custom|a separate} {config|config
    file|configuration|configuration file|settings file|yaml file}; --config; the --config {flag|option};
    {several|multiple|two|different} {config files|configurations|profiles}
    """,
    q="""
    what does --config do; can {it|ossrun} {use|read|load} {another|a different|two different|several} {config
    file|configuration files|configuration|settings files|config files}; {which|what} flag {loads|selects|takes|reads}
    {a|another|a different} {config|config file|configuration}; my config {file |}is {in another place|elsewhere|not
    in the default folder|somewhere else}
    """,
)
