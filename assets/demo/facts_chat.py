"""How to get started, and the terminal chat with its keys: the ways to ask, the thought and the answer of every intent.

The form is explained in intents.py.
"""

from intents import intent

intent(
    "start",
    think=(
        "The user wants to get started.",
        "First ossrun chat, which offers the download.",
        "ossrun serve and ossrun pull come later.",
    ),
    say=(
        "Start with `ossrun chat`: it takes the best model you have, or offers the download. `ossrun pull 20b` "
        "downloads a model and `ossrun serve` starts the API."
    ),
    vp="""
    get started{| with ossrun| with this}; begin with {ossrun|this tool}; take the first steps; learn the basics; set
    this up; use {ossrun|this tool|this program} for the first time; run ossrun; use ossrun; get going
    """,
    np="""
    {a|the} {quick start|quickstart|tutorial|getting started guide|short introduction|beginners guide|first steps};
    the first step; the basic commands; {all|the} {commands|verbs|subcommands} of ossrun; the most important commands;
    {an overview|a list} of {the|all} commands; basic usage; ossrun usage
    """,
    q="""
    {where|how} do i {start|begin}{| with ossrun| with this| here}; what {is|'s} the first {thing|step|command} {to
    do|to run|i should run|i need|to type}{| after installing|}; {what|which} {commands|verbs|subcommands} {are
    there|do you have|does ossrun have|exist|does it know|can i use|should i know}; what can {i do with ossrun|i do
    with this|this program do|this tool do|ossrun do for me|ossrun do}; {i just|i have just|we just}
    {installed|downloaded|set up|got|built} {it|this|ossrun|the binary|the program}{,|.| and} {what now|what next|what
    should i do|now what|where do i begin|what do i do now|how to go on}; {i am|i'm} {new|a beginner|new here|new to
    this}{,|.| and} {what do i do first|how to start|where to start|help me get started}
    """,
)

intent(
    "chat",
    think=(
        "The user wants to chat in the terminal.",
        "The command is ossrun chat.",
        "Without --model the best cached model that fits is taken.",
    ),
    say="Run `ossrun chat`. It opens a chat in the terminal with the best model that fits your machine.",
    vp="""
    {chat|talk|speak|converse} with {it|the model|gpt-oss|the ai|the assistant|a model}{| in the terminal| in my
    terminal| here}; {open|start|begin|launch|use|enter} {the|a|an interactive} {chat|conversation|chat
    window|session|terminal chat|dialog|chat session}; {ask|type|enter} {it |the model |}{questions|my
    questions|things|something|a few questions}{| in the terminal| interactively}; talk to {it|the model|it from my
    console|the ai}; have a {chat|talk|conversation|discussion}{| in the shell| in the console}; use {it|the model}
    interactively; chat
    """,
    np="""
    {a|the} {chat|terminal chat|tui|terminal ui|user interface|chat window|chat program|interactive mode|console
    chat|text interface|prompt where i can type}; ossrun chat; the chat command; an interactive {session|mode|chat}
    """,
    q="""
    where {can|do} i {type|enter|write|ask} {something|my question|my prompt|a message|text}; is there a
    {chat|ui|gui|user interface|tui|terminal interface}; how does the chat work; what does ossrun chat do; can we
    {talk|chat} in the {terminal|console|shell}
    """,
)

intent(
    "once",
    think=(
        "The user wants one answer on stdout.",
        "ossrun chat takes the question as an argument.",
        "Pipes work too.",
    ),
    say=(
        'Put the question behind it: `ossrun chat "question"` prints one answer on stdout and ends. Pipes work too,'
        ' for example `cat notes.txt | ossrun chat "summarize"`.'
    ),
    vp="""
    ask {a single question|one question|only one thing|just one thing|a question once}{| without the chat| from the
    command line| from a script| in the shell}; get {one|a single|just one|only one} {answer|reply|response}{| on
    stdout| in the shell| without opening the chat| in my script}; {pipe|send|feed|stream|redirect} {text|a
    file|data|stdin|input|a log|my notes|the output of a command} {into|to|through} {it|ossrun|the model|the chat};
    use {it|ossrun|the chat} {in a pipe|in a shell script|in a bash script|non interactively|in a script|without the
    ui|in cron|from bash|without a terminal}; {print|write} {one|the} {answer|reply} {to stdout|on stdout|to a file};
    read {a prompt|the question} from {stdin|a file|a pipe}
    """,
    np="""
    {a|} one {shot|off} {mode|answer|question|prompt|call}; {a|the} non interactive mode; a single {answer|reply|shot}
    {on stdout|from bash|in the shell|on the command line}; pipes; {piping|stdin|standard input|stdout|shell pipes};
    batch use in a shell script
    """,
    q="""
    {do|can} pipes work; can i {pipe|cat} {something|a file|text} {into|to} {it|ossrun}; does it read {stdin|from
    stdin|standard input|from a pipe}; can it {answer|reply} {once|one time|just once} {and exit|and quit|and stop|on
    stdout}; how does it work in {scripts|a shell script|bash|a pipeline}
    """,
)

intent(
    "showreason",
    think=(
        "The user wants to see the reasoning of a single answer.",
        "The flag is --show-reasoning.",
        "Without it only the answer goes to stdout.",
    ),
    say=(
        'Add `--show-reasoning`: `ossrun chat --show-reasoning "question"` prints the reasoning as well. Without it'
        " only the answer is printed."
    ),
    vp="""
    {print|show|output|include|get|see|add} the {reasoning|thoughts|thinking|chain of thought|analysis} {on stdout|in
    the output|on the command line|in my script|of a single answer|with the one shot answer|when piping|of a one shot
    question|in one shot mode|with a single question}
    """,
    np="""
    {the|} show-reasoning{| flag| option}; --show-reasoning; the {reasoning|thoughts|thinking} {on stdout|in one shot
    mode|on the command line|in the printed answer|of ossrun chat with a question}
    """,
    q="""
    why {is|does} the {reasoning|thinking} {not printed|missing|not show} {on stdout|in my script|when i pipe|in one
    shot mode}; what does --show-reasoning do; {the|my} {single|one shot|printed} {answer|reply} {has no|comes
    without|is missing the|lacks the} {reasoning|thoughts|thinking|analysis}{| how do i print it| can i have it too|}
    """,
)

intent(
    "stop",
    think=(
        "The user wants to stop an answer.",
        "Esc stops it.",
        "The chat stays open.",
    ),
    say="Press Esc. It stops the answer and the chat stays open.",
    vp="""
    {stop|interrupt|cancel|abort|halt|pause|break off|end|cut off|kill} {the|an|this|a running|a long|its}
    {answer|reply|response|generation|output|text}; stop it {from writing|from talking|talking|writing|while it
    writes|in the middle|mid sentence}; make it {stop|stop talking|stop writing|shut up|be quiet}; interrupt {it|the
    model|the assistant}
    """,
    np="""
    {a|the} {key|button|shortcut} to {stop|interrupt|cancel|abort} {it|the answer|an answer|generation|the reply}; the
    stop {key|button}; the escape key; interrupting {an answer|the model|it}
    """,
    q="""
    {which|what} {key|button|shortcut} {stops|interrupts|cancels|aborts|ends|halts} {it|the answer|an
    answer|generation|the reply|the output|a reply}; what does {esc|escape|the escape key} do; {it|the model} {does
    not stop|won't stop|never stops|keeps writing|keeps talking|keeps going|talks too long|goes on forever|writes
    nonsense|is writing too long}{| stop it|, how do i stop it|, make it stop| how to cancel}
    """,
)

intent(
    "leave",
    think=(
        "The user wants to leave the chat.",
        "Ctrl+C leaves.",
        "Esc would only stop an answer.",
    ),
    say="Press Ctrl+C to leave the chat, or type `/exit`.",
    vp="""
    {quit|exit|leave|close|end|shut down|terminate|get out of|go out of|escape from} {the chat|ossrun|the
    program|it|this|the terminal chat|chatting|the session|the app|the window|the conversation}; get back to {my|the}
    {shell|terminal|prompt}; get out{| of here| of this}; quit; exit
    """,
    np="""
    {a|the} {exit|quit} {command|key|shortcut}; the way out{| of the chat}; a key to {quit|exit|leave|close it};
    leaving the chat; exiting
    """,
    q="""
    {which|what} {key|shortcut|command} {quits|exits|leaves|closes|ends|terminates} {it|the chat|the
    program|ossrun|this}; what does {ctrl c|ctrl+c|control c} do; how do i {quit|exit|leave}; i am {stuck|trapped} in
    the chat; how do you close {this|it}
    """,
)

intent(
    "fold",
    think=(
        "The user asks to show or hide the reasoning in the chat.",
        "Ctrl+T does it.",
        "It works for earlier answers too.",
    ),
    say="Press Ctrl+T in the chat. It shows or folds the reasoning.",
    vp="""
    {hide|show|fold|unfold|collapse|expand|toggle|see|display|view|read|look at|make visible|open|close} {the|its|all
    the} {reasoning|thoughts|thinking|chain of thought|analysis|inner monologue|thinking text|thinking
    process|reasoning text}{| in the chat| in the chat window| in the terminal| while chatting| on screen| in the
    tui}; see {what it thinks|what it was thinking|what it thought|how it came to the answer|its thoughts|how it
    reasons}; watch it think
    """,
    np="""
    {the|its} {reasoning|thoughts|thinking|chain of thought} {in the chat|in the chat window|on the screen|in the
    tui}; {a|the} key {for|to show|to hide|to fold} the {reasoning|thoughts|thinking}; {visible|hidden|folded}
    {thoughts|reasoning}
    """,
    q="""
    {which|what} {key|shortcut} {shows|hides|folds|toggles} the {reasoning|thoughts|thinking|analysis}; what does
    {ctrl t|ctrl+t|control t} do; {can i|how can i} {see|read|hide} {what it thinks|its thoughts|its thinking|the
    thinking}; where {are|is} {the thoughts|the reasoning|its thinking}; the {thoughts|reasoning}
    {take|takes|fill|fills} {too much space|the screen}
    """,
)

intent(
    "chathelp",
    think=(
        "The user asks about the commands of the chat.",
        "/help lists them.",
        "Examples are /new and /effort.",
    ),
    say="Type `/help` in the chat. It lists the commands, such as `/new` and `/effort high`.",
    vp="""
    {list|see|show|find|learn|know} {the|all|all the} {slash commands|chat commands|commands in the chat|commands of
    the chat|keyboard shortcuts|keys|shortcuts|key bindings|hotkeys}{| in the chat| of the chat|}; get help
    {in|inside|within} the chat
    """,
    np="""
    {the|all|all the|a list of} {slash commands|chat commands|commands inside the chat|keyboard shortcuts|chat
    shortcuts|key bindings|hotkeys|keys of the chat|commands in the chat window}; help {in|inside|for} the chat; /help
    """,
    q="""
    {which|what} {commands|slash commands|keys|shortcuts|key bindings} {are there|work|can i use|do i have|exist|are
    available|does the chat have} {in|inside} {the chat|the chat window|a chat}; what does /help do; {which|what}
    {keys|shortcuts|hotkeys} {does the chat have|are there|can i press|exist}; {is there|do you have} {help|a help
    page} {in|inside} the chat
    """,
)

intent(
    "new",
    think=(
        "The user wants a new conversation.",
        "/new starts anew.",
        "The old messages are forgotten.",
    ),
    say="Type `/new` in the chat. It forgets the conversation and starts anew.",
    vp="""
    {start|begin|open|make} {a new|a fresh|another|an empty|a clean}
    {chat|conversation|session|topic|discussion|thread}; {clear|reset|wipe|empty|restart|delete|erase} the
    {chat|conversation|history|context|chat history|session|messages|dialog}; start {over|anew|again|from
    scratch|fresh|from the beginning}; make it forget {everything|what i said|the conversation|all of this|the
    messages|the earlier messages|our talk}; forget {the conversation|the chat|all this|what we talked about}
    """,
    np="""
    a {new|fresh|clean|empty} {conversation|chat|start|session|slate}; {a|the} command to {clear|reset} the
    {chat|conversation|history|context}; /new; the reset command
    """,
    q="""
    can it forget {what i said|everything|the conversation|our chat|all messages}; what does /new do; {how to|can i}
    change the topic; forget {this|it|the chat} and start {again|fresh|a new one}; let us {start over|begin
    again|start again}; new {chat|conversation|topic} please
    """,
)

intent(
    "model",
    think=(
        "The user wants to choose the model.",
        "The flag is --model.",
        "Without it the best cached model that fits is taken.",
    ),
    say=(
        "Use `--model`, for example `ossrun chat --model 120b`, or `/model` in the chat. Without it the best downloaded "
        "model that fits is taken."
    ),
    vp="""
    {choose|select|pick|switch|change|specify|set|decide|swap} {the model|which model {to use|runs|is used|answers|is
    loaded|it takes|i get}|between models|models|to the other model|to another model|between 20b and 120b}{| in the
    chat| for the chat| when starting|}; {use|run|load|start|chat with} {the other model|another model|a different
    model|a specific model|a certain model}; start {the chat|it|the server} with {the other model|a different
    model|another model|20b|120b}; make {it|ossrun} use {20b|120b|the other one|the other model}
    """,
    np="""
    {the|a} {model flag|model option|model switch}; --model; the model {choice|selection|it uses by default}; {the|a}
    default model; a different model {for the chat|in the chat|at start}
    """,
    q="""
    {which|what} model {is used|does it use|will it use|is loaded|does ossrun chat take|does it take|answers|is the
    default} {|by default|without a flag|when i start it}; how does it {choose|pick|decide on|select} {the|a} model;
    what does --model do; can i {switch|change} {models|the model}
    """,
)
