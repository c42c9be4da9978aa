"""Conversations that are kept, and the keys and commands of the chat: ways to ask, thought and answer of every intent.

The form is explained in intents.py.
"""

from intents import intent

intent(
    "continue",
    think=(
        "The user wants to go on with the last conversation.",
        "The command is ossrun chat --continue.",
        "Conversations are kept on disk.",
    ),
    say=(
        "Run `ossrun chat --continue`. It goes on with the latest conversation. `ossrun chat --resume NAME` goes on with "
        "another one."
    ),
    vp="""
    {go on with|continue|carry on with|pick up|resume|reopen|get back to|return to|keep going with|take up|restore|
    bring back} {my|the|our} {last|latest|previous|old|earlier|yesterday's|most recent|former}
    {chat|conversation|session|talk|discussion|dialogue}; {pick up|continue|go on|start again|carry on|resume} {where i
    left off|where we left off|where i stopped|from yesterday|from last time|from where i was|after the crash};
    get {my|the} {chat|conversation|session} back{| after a crash| after closing the window| after a reboot}
    """,
    np="""
    --continue; the continue flag; {my|the} {last|latest|previous|yesterday's} {chat|conversation|session}; ossrun chat
    --continue; the {chat|conversation} {from|of} {yesterday|this morning|last night|last time|before the crash}
    """,
    q="""
    {i closed|i shut|i accidentally closed|my laptop died and i lost|my pc crashed and i lost|i killed} the
    {window|terminal|chat|session|tab}{, is it gone|, can i go on|, how do i get it back|, is my chat lost|}; {is|are}
    {my chat|my conversation|the history|my chats|my conversations|everything} {saved|lost|kept|gone|stored|on disk}{|
    after a crash| when i close it| if it crashes| after kill -9| when i quit}; does {it|the chat|ossrun} {remember|keep|
    save|store} {my|our|the} {chats|conversations|last conversation|messages|history|old chats}; what does --continue
    do; {where were we|same chat as before|same conversation as yesterday|last session again|previous chat please|again
    the conversation from before}; {ssh|the connection|the power} {dropped|broke|failed|went out} {mid chat|in the middle
    of the conversation|while chatting}{, now what|, how to go on|}
    """,
)

intent(
    "resumechat",
    think=(
        "The user wants an older conversation.",
        "/sessions lists them, --resume opens one.",
        "The name or the id says which.",
    ),
    say=(
        "Use `ossrun chat --resume NAME`, or type `/sessions` in the chat: it lists and searches the kept conversations, "
        "and `/resume` opens one."
    ),
    vp="""
    {list|see|show|find|browse|look at|view|get to|go through} {my|all|the|all my} {old|earlier|past|saved|kept|other|
    previous|} {chats|conversations|sessions|discussions}; {search|look|grep} {through|in} {my|old|all|past}
    {chats|conversations|sessions}{| for a word| for <w>}; {open|resume|load|reopen|continue|go back to} {a|an|another|a
    certain|a specific|that} {older|old|named|saved|other|specific|different} {chat|conversation|session}{| from last
    week| about <w>| by name| by id|}
    """,
    np="""
    --resume; /sessions; /resume; {the|a} {list|overview|search} of {my|old|saved|all} {chats|conversations|sessions};
    {the|my} {chat|conversation} {about <w>|from last week|from monday|i had about <w>}; saved {sessions|chats}; chat
    {history|archive}
    """,
    q="""
    where {are|do i find|did you put} my {old|earlier|past|previous|saved} {chats|conversations|sessions}; {how|where}
    {can i|do i} find {the|that} {chat|conversation} {about <w>|from last week|from tuesday|with the <w>}; what
    {sessions|conversations|chats} {do i have|are there|are saved|exist}; what does {--resume|/sessions|/resume} do; {two
    weeks ago|last week|on monday|a while ago} {we talked|i chatted|i had a chat} about <w>{, where is it|, how do i find
    it|, can i open that again|}
    """,
)

intent(
    "rename",
    think=("The user wants to name a conversation.", "The command is /rename.", "The name works with --resume later."),
    say="Type `/rename NAME` in the chat. Later `ossrun chat --resume NAME` opens that conversation.",
    vp="""
    {rename|name|label|title|give a name to|give a title to|call} {this|the|a|my|the current}
    {chat|conversation|session}{| something else| differently|}; {change|set} the {title|name} of {this|the|my}
    {chat|conversation|session}
    """,
    np="/rename; {a|the} {name|title|label} {for|of} {this|my|the} {chat|conversation|session}; renaming a conversation",
    q="can {chats|conversations|sessions|i} have {names|a name|titles}; what does /rename do; {this|the} chat needs a {better|} name",
)

intent(
    "nohistory",
    think=(
        "The user wants nothing to be kept.",
        "The flag is --no-history.",
        "Then neither messages nor inputs are on disk.",
    ),
    say="Use `ossrun chat --no-history`. Then neither the conversation nor what you type is kept.",
    vp="""
    {chat|talk|use it|start a chat|ask} {without leaving traces|privately|incognito|without saving|without history|
    without a trace|without keeping anything|off the record}; {not|never} {save|keep|store|record|write down} {my|the|
    this} {chat|conversation|chats|messages|history|prompts}; {turn off|disable|switch off|avoid} {the|} {history|saving
    of chats|chat history|recording|logging of chats}
    """,
    np="--no-history; {incognito|private|secret|throwaway|temporary} {mode|chat|session|conversation}; a chat {without|with no} {history|traces|saving}",
    q="""
    {don't|do not|please don't|never} {save|keep|store|remember|record|log} {this|my chat|what i type|my conversation|
    anything}{| on disk|}; is there {an incognito mode|a private mode|a way not to save chats}; {nobody|my <family>|my
    boss} {should|may|must} {see|find|read} {this chat|what i ask|my chats}{| later|}; what does --no-history do;
    {can i|how to} {stop|prevent} {it|ossrun} {from|} saving my {chats|messages|questions}
    """,
)

intent(
    "edit",
    think=("The user wants to change an earlier question.", "The command is /edit.", "It makes a branch, nothing is lost."),
    say="Type `/edit` to change your last question and send it again, or `/edit N` for question N. The old answer stays as a branch.",
    vp="""
    {edit|change|correct|fix|rewrite|reword|rephrase|modify|redo|alter} {my|the|an|a} {last|previous|earlier|sent|first|
    old} {question|message|prompt|input|line}{| and send it again| and resend it| after sending|}; {fix|correct} a typo in
    {my|the} {question|last message|prompt i sent|message i already sent}; {resend|send again} my {question|message} {with
    changes|in other words|differently}; ask the {same|last} {thing|question} differently
    """,
    np="/edit; the edit command; {an|the} edited {question|message|prompt}; a typo in {my|the} {last|sent} {question|message}; editing {a message|my prompt|an earlier question}",
    q="""
    i {made a typo|misspelled something|wrote nonsense|forgot a word|made a mistake} in my {last|previous|}
    {question|message|prompt}{, can i change it|, how do i fix that|, i want to edit it|}; can i {edit|change|correct}
    {what i sent|a message|my question|what i wrote|an earlier message}; what does /edit do; {wrong|bad} question,
    {let me|i want to} {change|edit|rewrite} it
    """,
)

intent(
    "regenerate",
    think=("The user wants another answer.", "The command is /regenerate.", "The earlier answer stays as a branch."),
    say="Type `/regenerate` in the chat. The last question is asked again, and `/branch` goes back to the earlier answer.",
    vp="""
    {regenerate|redo|retry|repeat|reroll|renew} {the|that|an|this|its} {answer|last answer|reply|response|output}; {get|
    have|see|ask for} {another|a different|a second|a new|an alternative|a better|one more} {answer|version|try|reply|
    attempt|response|variant}{| to the same question| to my last question|}; ask {the same|the last question|it} {again|
    once more}; let it try again
    """,
    np="/regenerate; {another|a second|a different|one more} {answer|try|attempt|version}; {a|the} {retry|reroll|redo|regenerate} {command|button|key}",
    q="""
    {i don't like|i hate|i am not happy with|not satisfied with} {this|that|the|its} {answer|reply}{, another one|, again|,
    try again|, give me a different one|}; {try|do that|answer|say that} {again|once more|differently|another time}; what
    does /regenerate do; {the answer was|that was} {bad|wrong|weird|useless}{, try again|, do it again|, redo it|}
    """,
)

intent(
    "branch",
    think=("The user asks about branches.", "/branch goes between them.", "/edit and /regenerate make them."),
    say="Type `/branch` for the next branch or `/branch N` for branch N. `/edit` and `/regenerate` make branches of a conversation.",
    vp="""
    {go|switch|jump|move|change|get} {between|to|back to|among} {branches|another branch|the other branch|the earlier
    answer|the first answer|the old version|versions of an answer|the previous version|the other answer}; {see|compare|
    show|get back} {both answers|the earlier version|the previous answer|the old answer|all versions}{| after
    regenerating| after an edit|}; {fork|branch|split} {a|the|this} {chat|conversation}
    """,
    np="/branch; {branches|the branches|forks} {of|in} {a|the|my} {chat|conversation}; {the|an} {earlier|first|old} {version|variant} of the answer",
    q="what does /branch do; what {is|are} {a branch|branches}{| in the chat| here}; can i {fork|branch} a {chat|conversation}; {after|since} {/edit|/regenerate} the old answer {is gone|disappeared|vanished}{, how do i see it|, where is it|}",
)

intent(
    "compact",
    think=(
        "The user asks about a full context.",
        "The command is /compact.",
        "It goes on from a summary of the conversation.",
    ),
    say=(
        "Type `/compact` in the chat. It summarises the conversation and goes on from the summary, so that the context "
        "has room again."
    ),
    vp="""
    {compact|compress|summarise|summarize|shrink|condense|shorten|squeeze} {the|this|my|our} {chat|conversation|history|
    context|session|discussion}; {free|make|get|win|gain} {space|room|some space} in the {context|window|conversation|
    context window}; {go on|continue|keep going} when the {context|window|chat} is {full|nearly full|exhausted|too long};
    {avoid|fix} a full context{| window|}
    """,
    np="""
    /compact; {a|the} full context{| window|}; a summary of {the|our|this} {chat|conversation}; the {yellow|red|coloured}
    {context number|status line|context display}; {a|the} {too long|very long|endless|huge} {chat|conversation};
    context {compaction|compression}
    """,
    q="""
    {the|my} {context|context window|window|conversation|chat} is {full|nearly full|almost full|at 90 percent|too long|at
    95 %|red|yellow|running out}{, what now|, what do i do|, help|, what can i do|}; what {happens|can i do|do i do} when
    the {context|context window|window|conversation} {is full|fills up|gets too long|runs out|overflows}; {why is|what
    means} the {context|status line|number} {red|yellow}; what does /compact do; {it|the chat|the model} {forgets|is
    forgetting|forgot} {the beginning|what i said|earlier messages}{| of our chat|}; {the chat|our conversation|this} {got|
    gets|is getting} {too|very|really} long; my message does not fit{| any more| into the context|}
    """,
)

intent(
    "copy",
    think=("The user wants to copy an answer.", "The command is /copy.", "A number copies that block of code."),
    say="Type `/copy` to copy the last answer, or `/copy 2` for the second block of code.",
    vp="""
    {copy|get|grab|put|take} {the|an|its|that|the last|a} {answer|reply|code|code block|output|snippet|block of code|
    second code block|response|program it wrote}{| to the clipboard| into my clipboard| out of the chat| for pasting|};
    copy {and paste|} {code|text} {from|out of} the chat
    """,
    np="/copy; {the|my} clipboard; {copying|copy and paste}{| of code| of answers|}; a copy {of the answer|of the code|command|key|button}",
    q="what does /copy do; can i copy {the answer|code|the code|code blocks|a block|only the code}; {how|where} do i {get|copy} {the|this|that} {code|snippet|answer} {out of here|into my editor|to another window}; clipboard",
)

intent(
    "export",
    think=("The user wants a conversation as a file.", "The command is /export.", "The file is Markdown or JSON."),
    say="Type `/export FILE.md` in the chat for Markdown, or `/export FILE.json` for JSON. It writes the whole conversation.",
    vp="""
    {export|save|dump|write|store|archive|share|print out|put} {the|this|my|our|a|the whole} {chat|conversation|session|
    transcript|dialogue|discussion}{| to a file| as markdown| as json| to markdown| into a file| as a file| to disk| as
    text| in a file|}; {make|get|create} a {transcript|markdown file|file|json file|log} of {the|this|our} {chat|
    conversation|session}; {send|show|give} {the|this} {chat|conversation} to {<user>|someone|my <family>}
    """,
    np="/export; /save; {a|the} {transcript|markdown file|export|record} of {this|the|our} {chat|conversation}; {markdown|json} {export|output} of the {chat|conversation}; exporting a chat",
    q="can i {export|save|keep|download|archive} {the|this|my} {chat|conversation|discussion}{| as markdown| as a file| to json|}; what does {/export|/save} do; {is there|do you have} {an export|a save command|a way to export chats}; <user> wants {this|our} {chat|conversation} {as a file|in markdown|by mail|as json}",
)

intent(
    "modelchat",
    think=("The user wants to change the model inside the chat.", "The command is /model.", "The conversation stays."),
    say="Type `/model 120b` (or another name) in the chat. The conversation goes on with that model.",
    vp="""
    {switch|change|swap|exchange} {the|to another|to a different|to the other} model {in|inside|within|without leaving|in
    the middle of|during} {the|a|this|my} {chat|conversation|session}; {switch|change|go|move} to {<big>|<small>} {in
    the|without leaving the|in the middle of a|inside the|within this} {chat|conversation}
    """,
    np="/model; {a|the} model {switch|change} {in|inside|within} the {chat|conversation}; another model {mid chat|in this chat|in the same conversation|without restarting}",
    q="can i {change|switch} {models|the model} {in|inside|during|in the middle of|without leaving|without restarting} {the|a|this} {chat|conversation}; what does /model do; {continue|go on with} this {chat|conversation} {with|on|in} {<big>|<small>|another model}",
)

intent(
    "attach",
    think=("The user wants to give it a file.", "@path in a message attaches a text file.", "Tab completes the path."),
    say=(
        "Write `@path` in your message, for example `explain @main.go`. It attaches the text file, and Tab completes the "
        "path. Without the chat: `cat FILE | ossrun chat \"question\"`."
    ),
    vp="""
    {attach|add|include|insert|give it|upload|send it|show it|pass|feed it|load|open|read} {a|my|this|the|some|several|
    one|two} {file|text file|source file|log file|<doc>|files|csv|readme|code file|config file}{| to a message| to my
    question| in the chat| to the chat| with the question|}; ask {about|something about|questions about} {a|my|this}
    {file|log file|source file|document|code file}; {let|make|have} {<it>} {read|see|look at|check|review|summarize} {a|my|
    this} {file|<doc>|source file|log}
    """,
    np="@path; {file|files} {attachments|attachment|upload|uploads}; {an|the} {attachment|attached file|at sign}; {a|my} {file|log|readme} {in|as part of} {the|my} {question|message|prompt|chat}",
    q="can {<it>|you} {read|open|see|take|load|look at} {files|my files|a file|my code|documents|a text file|my notes|text files}; can i {attach|upload|add|drop|drag in|send} {files|a file|documents|text files|my code}; what does {@|@path|the @ sign|@file} do; {i have|here is|there is} a {file|log file|<doc>}{, can it read it|, how do i show it to you|, how to attach it|}; does it {take|accept|support} {files|attachments|uploads|documents}",
)

intent(
    "editor",
    think=("The user wants to write in an editor.", "Ctrl+G opens it.", "It takes VISUAL or EDITOR."),
    say="Press Ctrl+G in the chat. It opens the message in `$EDITOR` (or `$VISUAL`).",
    vp="{write|compose|edit|type|draft} {my|a|the|long|a long|longer} {message|messages|prompt|prompts|question|text} in {vim|my editor|an editor|nano|emacs|an external editor|neovim|a real editor}; {open|use|start|call} {my|an|the|an external} {editor|text editor}{| from the chat| for the message| for a long prompt|}",
    np="Ctrl+G; {vim|an editor|my editor|nano|emacs|an external editor|$EDITOR} {for|in} {the|my|long} {message|chat|messages|prompts|prompt}; the EDITOR variable",
    q="what does ctrl g do; can i use {vim|my editor|nano|emacs|neovim} {here|in the chat|for long prompts|to write messages|to type the question}; which editor {is used|does it open}",
)

intent(
    "newline",
    think=("The user wants a new line in the message.", "Alt+Enter or Ctrl+J makes one.", "Enter alone sends."),
    say="Press Alt+Enter or Ctrl+J for a new line. Enter alone sends the message.",
    vp="{write|type|enter|send|make|insert|add|get} {a new line|several lines|a line break|multiple lines|a multi line message|a newline|more than one line|a paragraph break|line breaks}{| in my message| without sending| in the chat|}; {break|wrap} {a|the} line{| without sending it|}",
    np="{a|the} {new line|line break|newline|multiline message|multi-line prompt|second line}{| in my message| in the chat| without sending|}; {multiline|multi line} {input|messages|prompts}; Alt+Enter; Ctrl+J",
    q="{enter|return|the enter key} {sends|submits} {it|the message|everything} {at once|right away|too early|immediately}{, how do i get a second line|, i want a new line|, how do i write more|}; how do i {not send|go to the next line}{| when i press enter|}; can {messages|a message|my question} have {several|more|two|many} lines",
)

intent(
    "inputs",
    think=("The user wants an earlier input again.", "Up and Down go through them.", "Ctrl+R searches them."),
    say="Press Up and Down for earlier inputs, or Ctrl+R to search them.",
    vp="{get|find|recall|bring back|search|repeat|reuse|see|scroll through} {my|an|the|what} {earlier|old|last|previous|past|former} {input|inputs|prompts|prompt|entries|typed lines}{| again|}; search {the|my} {input|prompt|typing} history; {find|get back} what i typed {before|yesterday|earlier|an hour ago}",
    np="{the|my} {input|prompt|typing} history; {earlier|previous|old|past} {inputs|prompts|entries}; Ctrl+R; the {up|arrow} key{|s}",
    q="what does {ctrl r|ctrl+r|the up key|arrow up} do{| in the chat|}; like {ctrl r|reverse search|history search} in bash{| but here|}; {i typed|i wrote} {something|a prompt} {before|earlier|yesterday}{, how do i get it again|, can i get it back|}",
)

intent(
    "screen",
    think=("The user asks how the chat looks.", "The flag is --theme with dark, light or none.", "--plain prints lines only."),
    say="Use `ossrun chat --theme light` (or dark, none). `--plain` is a chat that only prints lines, also for screen readers.",
    vp="""
    {<change>|switch} {the|its} {colors|colours|theme|color scheme|look|colour scheme|color theme|appearance}{| of the
    chat|}; {use|get|have|enable|turn on} {a|the} {light|dark|white|black|bright|plain} {theme|mode|background|screen|
    look}; {turn off|disable|remove|get rid of} {the|all|} {colors|colours|color}; use {it|the chat} with {a|my} {screen
    reader|braille display}; {get|have|use} {plain|simple|bare} {text|output|lines}{| without a fancy screen|}
    """,
    np="""
    --theme; --plain; {light|dark|white|bright|black} {mode|theme|background}; {the|a} {theme|color scheme|colors|colours|
    look}{| of the chat|}; {a|my} screen reader; {accessibility|blind users|a dumb terminal|NO_COLOR}; {no|without}
    {colors|colours}; {a|the} plain {chat|mode|screen}
    """,
    q="""
    {i can't|i cannot|hard to|can barely} {read|see} {the|these|those|this} {colors|text|letters|yellow text}{| on white|
    on my white terminal| on my screen|}; my {terminal|background|screen} is {white|light|bright|black}{, the text is hard
    to read|, can i change the colors|}; {is|are} there {a light theme|themes|a dark mode|a light mode|other colors};
    i'm blind{, can i use it|, does it work with a screen reader|}; does it {work|run} with {a screen reader|a dumb
    terminal|emacs shell|no colors}; what does {--theme|--plain} do; {too|so} {many colors|colorful}
    """,
)

intent(
    "mouse",
    think=("The user has trouble with the mouse.", "The flag is --no-mouse.", "Then the terminal selects text itself."),
    say="Use `ossrun chat --no-mouse`. It leaves the mouse to the terminal, so that you can select text with it. PgUp and PgDn scroll.",
    vp="{select|mark|highlight} {text|something|words|a line|an answer} {with the mouse|in the chat|by mouse|on the screen}; {turn off|disable|switch off|stop} {the|} mouse{| support| capture| in the chat|}; {scroll|scroll up|scroll back|page up}{| in the chat| to the top| to earlier messages| with the keyboard|}",
    np="--no-mouse; {the|my} mouse{| in the chat| wheel| support|}; {mouse|text} selection{| in the chat|}; scrolling{| in the chat|}",
    q="{i can't|i cannot|why can't i|how do i} {select|mark|highlight} {text|anything|words}{| with the mouse| in the chat|}; {the|my} mouse {does not select|is captured|does nothing|is broken|does not work}{| in the chat| here|}; what does --no-mouse do; how do i scroll{| up| back|}",
)

intent(
    "queue",
    think=("The user asks about typing during an answer.", "The message is queued.", "Esc stops the answer and gives it back."),
    say="Just type: a message that you send while an answer is written is queued and sent when that ends. Esc stops the answer and puts the queued message back.",
    vp="{type|write|send|queue|enter} {the|a|my} {next|another|second|new} {message|question|prompt} {while it answers|while it is still writing|before it is done|during an answer|while it thinks|while the answer streams}",
    np="{the|a} {message queue|queued message|waiting message}; {typing|writing} {while it answers|during an answer|ahead}",
    q="can i {type|write|send something|ask more} {while|when} {it|the model} {is writing|answers|is thinking|is busy|still answers|streams}; what {happens|happens to my message} if i {type|send|write} {something|more|a message} {while it answers|before it is done|during an answer}; do i have to wait {until it is done|for the answer} before {i type|the next question}",
)
