"""Everyday ways to ask about the chat, the server and the API, from the sixth training phase on (see more.py)."""

MORE = {
    "start": (
        """
        {just|freshly|recently} installed {this|ossrun|it}{, now what|, what next|, where to begin|}; {what's|what is}
        the {quickest|fastest|simplest|shortest} way {in|to begin|to get going|to try it|to try this out}; how do i
        {begin|get going|try this|try it out|get up and running|get off the ground|take off|kick things off}; {give me
        a|a} {quick|short|brief|five minute|two minute}
        {tour|intro|introduction|overview|tutorial|walkthrough|quickstart| demo}{ of ossrun| please|}; what
        {commands|verbs|subcommands} {are there|do you have|does it have|exist|should i know|matter};
        {list|show|name|tell me} {all |the |}{commands|verbs|subcommands}{ of ossrun| please|}; {never|i never|i have
        never} used {ossrun|this|such a thing}{ before|}{, help|, where do i start|, what do i do first|};
        {total|complete|absolute} {newbie|novice|beginner} here{, what do i do|, where to begin|}; {getting
        started|quickstart|quick start|first steps|usage|how to use this|how to use ossrun|basic usage|the basics};
        what {do|should|must|would} i {type|run|enter} {first|to begin|at the very beginning|after installing|after
        the install}; how {does one|do you|do people} use {this|ossrun|it}; {teach|show} me {the basics|how this
        works|how to work with it}; where {should|do|would} a {beginner|newcomer|new user} {start|begin}; which
        {command|step} comes first
        """
    ),
    "chat": (
        """
        {open|launch|start|begin} {a|the} {chat|conversation|dialogue|session|chat window|repl|talk|terminal ui|tui}{
        with gpt-oss| with the model| in the shell| here|}; {can|may|could} {i|we} {talk|speak|chat} {to|with}
        {it|gpt-oss|the model|you} {interactively|in the shell|from my terminal|in a console|line by line}; where is
        the {chat|conversation|prompt|interactive mode|chat interface|repl}; interactive
        {mode|session|chat|prompt|use}; {i feel like|i fancy} {chatting|a chat|talking}; {is there|do you have} {an
        interactive mode|a repl|a chat interface|a text interface|something like chatgpt in the terminal};
        {chatgpt|chat gpt} {in|for|like thing in} {my|the} {terminal|shell|console|command line}; {how|which way}
        {do|can} i have {a dialogue|a back and forth|a longer conversation|a conversation} with {it|the
        model|gpt-oss}; {ask|put} {several|many|more} questions {one after the other|in a row|in one session}; command
        {for|to start|that starts} {the chat|chatting|a conversation|talking to gpt-oss}
        """
    ),
    "once": (
        """
        {can|could|may|how do} i {call|use|run|invoke} {it|ossrun|the model} {from|in|inside} {a |my |}{script|bash
        script|shell script|cron job|pipeline|makefile|pipe}; {non
        interactive|noninteractive|non-interactive|batch|one shot|one-shot|single shot}
        {use|mode|call|answer|question|prompt|}; {pipe|redirect|stream|send|feed} {a file|text|my notes|the log|some
        input|stdin|data|a document} {into|to|through} {it|ossrun|the model|gpt-oss}; {answer|reply to} {a
        single|one|just one} {question|prompt} {and then exit|and stop|then quit|and end|without the chat}; {ask|pose}
        {a quick|one|a single|a} question {from|on|in} the {shell|command line|terminal|prompt} without
        {chat|chatting|a chat|entering a chat|opening anything|starting a conversation}; {does it|can it}
        {read|accept|take} {stdin|standard input|piped input|a pipe|input from a pipe};
        {summarize|translate|process|analyze} {a|my|the} {file|text file|log|log file|document} {from|on|with} {the
        command line|the shell|a pipe|cat}; {just|only} {print|give me|output|write} the answer {to stdout|on
        stdout|to a file|and exit|and nothing else}; {save|store|write|capture} the {answer|output|reply} {in|to|into}
        a {file|variable}; {use|run} the answer {in|inside} {a|my} script; one {question|prompt}, one {answer|reply}{,
        no chat|, then exit|}
        """
    ),
    "showreason": (
        """
        {print|output|show|include|dump} {the|its} {reasoning|thoughts|chain of thought|thinking|analysis} {on|to}
        {stderr|stdout|the terminal|the screen} {when|if|while} {i ask once|i use a pipe|i give a prompt|answering
        once}; {with|for} {a single|one|the one-shot|a one-shot} {prompt|question|answer}{,|} {i'd like to|i want
        to|can i|how do i} {see|get|read} {the|its} {reasoning|thoughts|thinking|chain of thought} {too|as well|also};
        chain of thought {in|of} {a one shot answer|the single answer|one answer|command line answers|non-interactive
        mode}; {flag|option} {to show|to print|that prints|that shows|for showing} {the|its|}
        {reasoning|thinking|thoughts|chain of thought}; why {do|can} i {not see|only see the answer, not} the
        {thoughts|reasoning} when i {pass|give} a {question|prompt} on the command line;
        {--show-reasoning|show-reasoning|show reasoning}
        """
    ),
    "stop": (
        """
        {it|the model} {won't|does not|doesn't|will not} {stop|shut up|end|finish}{ writing| talking|}{, what do i
        press|, help|}; {the|this} {answer|reply|output} is {far |way |much |}too long{,|.|} {stop it|how do i stop
        it|how to interrupt|can i cut it off}; {interrupt|cancel|abort|break off|halt|kill|cut off|end|stop}
        {the|a|this|an} {running |current |long |}{answer|reply|generation|response|output}; {how|can i|is there a way
        to} {cut|break} {it|the model|the answer} {short|off}; {key|button|shortcut} {to|that|which}
        {interrupts|stops|stop|cancel|cancels|abort|aborts|halts} {the answer|the reply|generation|a
        reply|it|writing|the output}; i {have read enough|know enough|changed my mind|asked the wrong thing}{,|}
        {stop|how do i stop the answer|can i interrupt}; stop {typing|writing|generating|it|now|the answer|answering};
        {halt|stop|interrupt} {in the middle of|during|halfway through} {a|an|the} {answer|reply|sentence}
        """
    ),
    "leave": (
        """
        {exit|quit|leave|close|get out of|end|terminate|finish} {the chat|ossrun|the program|this chat|the session|the
        application|the app|the conversation}; {i want|i'd like|time} to {leave|quit|go|exit}{ the chat| now|}; how
        {can|do|does one} i {get out of here|exit|quit|leave|close this|get back to the shell|return to the prompt};
        {how to|what key to} {quit|exit|leave}; {done|finished|i am done|i'm done} {chatting|talking|with the chat}{,
        how do i exit|, how do i leave|}; {back|return} to {the|my} {shell|prompt|terminal|command line}; the
        {exit|quit} {command|key|shortcut}; is {ctrl c|ctrl+c|ctrl d|quit|exit} {right|the way|how i leave|ok}{ to
        leave| to exit|}
        """
    ),
    "fold": (
        """
        {show|hide|display|fold|unfold|toggle|collapse|expand} {the|its} {reasoning|thoughts|thinking|chain of
        thought|thinking part|gray text} {in the chat|on screen|in the window|while chatting|in the terminal chat|};
        {where|why} {is|are|can't i see} {the|its} {reasoning|thoughts|thinking|chain of thought} {in the chat|while
        chatting|on the screen|in the chat window}; {in the chat|while chatting|in a chat}{,|} {can i|how do i|i want
        to} {see|read|look at|follow|inspect} {what it|how it|its}
        {thinks|thought|reasons|thoughts|reasoning|thinking}; {the|its} {thoughts|reasoning}
        {vanish|vanished|disappear|disappeared|go away|are folded away}{, how do i get them back|, where are they|};
        {shortcut|key} {for|to toggle|to show|to hide|to fold|to unfold} the {reasoning|thoughts|thinking}; what does
        ctrl+t do; ctrl+t; ctrl t
        """
    ),
    "chathelp": (
        """
        {is|are} there {help|slash commands|commands|special commands|a help page|shortcuts} {in|inside|for|within}
        the chat; {how do i|can i} {get|see|find} {help|a list of commands|all commands|the commands} {in|inside|while
        in} the chat; {slash|chat} {commands|command list|help}; what {does|can} {/help|slash help} {do|show}; /help;
        commands {available|that work|to type} {in|inside} the chat; {how|what} do i {find|know|learn} {which|the}
        commands {i can type|work|exist} {in|inside} {the|a} chat{ session|}; {keyboard shortcuts|keys|key
        bindings|hotkeys} {in|of|for} the {chat|terminal chat|chat window}
        """
    ),
    "new": (
        """
        {start|begin|open} {over|afresh|anew|from scratch|a new conversation|a new chat|a fresh chat|with a clean
        slate|a blank chat|another conversation}; {forget|drop|clear|delete|erase|reset|wipe} {everything|the
        conversation|the history|all that|what i said|our chat|the context|the chat history|earlier messages|all
        previous messages|its memory|the messages so far}; {clean|blank|empty} {slate|chat|conversation|history}; {new
        conversation|new chat|fresh start|clean start|reset}{ please|}; {i want|i'd like|let me} to {change|switch}
        {the |}{topic|subject}{ completely|}; let me {start over|begin again|change the subject|reset this}; how do i
        {clear|reset|empty} {the chat|the screen and history|the conversation|the history|the context|it};
        {without|instead of} {quitting|leaving|restarting}{,|} {start over|begin a new conversation|clear the
        history|get an empty chat}; what does /new do; /new
        """
    ),
    "model": (
        """
        {pick|choose|select|specify|name|set|switch|change} {the|a|another|a different|which|my} model{ for the chat|
        to run| to use| for serving| at startup| when starting|}; {chat|talk|run|start|serve} {with|using|on} {the
        120b|120b|the 20b|20b|the big one|the small one|the large model|the other model|a certain model|my own
        checkpoint|a checkpoint folder|the demo}; {instead of|not} {the|} 20b{,| but} {i want|use|take|run} {the|}
        120b{ in the chat| when chatting| now|}; {which|what} {flag|option|switch}
        {selects|picks|chooses|sets|decides} the model; it {starts|uses|takes|picks|loads} the wrong model;
        {how|where} do i {say|tell it|tell ossrun} {which|what} model {i want|to use|to take|to load}; {use|load|run}
        a {model|checkpoint} from {a|my} {folder|directory|path}; {both|two} models are {downloaded|installed|there}{,
        choose one|, which one is used|, how do i choose|}; --model; the model {flag|option|switch|setting}
        """
    ),
    "serve": (
        """
        {expose|offer|provide|publish|host} {it|the model|gpt-oss|ossrun} {as|over|through|via} {an api|http|rest|a
        web service|an openai api|an endpoint|a server|a local api|an openai endpoint}; {can|could|does|will}
        {ossrun|it|this} {replace|act as|work as|behave like|mimic|imitate|emulate|stand in for} {the openai
        api|openai|an openai server|the api of openai|an api server|an openai endpoint}; {i want|i need|i'd like}
        {my|our} {tools|apps|programs|scripts|code|editor|frontend|web ui|agents} to {use|talk to|call|reach|access}
        {it|the model|gpt-oss} {over http|locally|through an api|via http|by http|with the openai protocol};
        {local|own|private|self hosted} {openai|chatgpt|llm|ai} {api|server|endpoint|backend}; {make|get} {an|the}
        {api|http api|endpoint} {available|running|online|up}; {run|start} {in|as} {server mode|a daemon|a background
        service|a service}; {http|rest|web|api} {server|service|endpoint|access}; {which|what} command
        {starts|runs|launches|brings up|gives me} the {api|server|http server|endpoint|openai api}; {drop in|drop-in}
        replacement for {openai|the openai api}; {connect|link|hook} {my app|a web ui|open webui|vs code|a client|my
        frontend|langchain} {to|up with} {it|ossrun|gpt-oss|the model}; {call|query|reach} {it|the model}
        {over|through|via|with} {http|curl|rest|the network|the openai protocol}; {at|on} {which|what}
        {url|address|port} {is|does} the {api|server|endpoint}{ listen| run| available|}
        """
    ),
    "serve_p": (
        """
        {put|bring|have|get} the {server|api|endpoint} {up |}on port $P; {listen|serve|bind|run} on $P{ please|
        instead| instead of 8000|}; {i want|i need|i'd like} {the|an|my} {server|api|endpoint} {at|on} {port |}$P;
        {start|launch|run|open} {it|the api|ossrun|the server|an openai server|the openai api} {on|at} port $P; port
        8000 is {taken|busy|in use|used}{,|.} {use|take|try|i want} {port |}$P; {my|the}
        {firewall|proxy|app|client|frontend} {only allows|needs|expects|wants} {port |}$P; serve {over|at|through}
        port $P; {make|let} {it|the api|the server} {answer|listen|run} {on|at} port $P
        """
    ),
    "port": (
        """
        {change|set|choose|pick|move|specify|use} {the|another|a different|my own|a custom} port{ of the server| for
        the api| number| for serving|}; {port|the port} {8000|} is {taken|busy|in use|used|occupied|not free|already
        used|blocked}{ already| by something else|}; {address|port} already in use; {something|another program|another
        server|jupyter} {is|runs|already runs|listens|sits} on {port |}8000; {which|what} port {does|will|is} {it|the
        server|the api} {use|listen on|used|on}{ by default| normally|}; {default|standard} port; {listen|run|serve}
        on {another|a different|a specific|any|my own} port; {how|where} {do|can} i {set|change|choose|define|give}
        the {port|port number}; port {number|flag|option|setting}; --port; {can|may} the server {listen|run|be}
        {on|at} {another|a different} port; the port {conflicts|clashes|collides}{ with my other server|}
        """
    ),
    "host": (
        """
        {reach|access|use|call|contact|open} {the server|the api|it} from {another|a different|a second|my other}
        {machine|computer|laptop|phone|tablet|host|pc|device}; {make|let} {the server|the api|it} {be
        reachable|visible|public|accessible|available|listen} {in|on|to|from} {the|my|our} {lan|network|office|home
        network|wifi|whole network|other computers|outside|team}; {my|our}
        {phone|tablet|colleagues|team|friends|coworkers|kids|other pc|roommate} {can't|cannot|should|shall|want
        to|need to|must} {connect|reach it|use it|access it|reach the server|use the server|use my server};
        {listen|bind|serve} {on|to} {all|every|other} {interfaces|addresses|network interfaces|ips}; {connection
        refused|no connection|cannot connect|it refuses the connection} from {another|a second|my other}
        {machine|computer|pc|host}; bind {address|ip|host}; {0.0.0.0|--host|host flag|the host option}; {share|offer}
        {the|my} {server|api|model} {with|to} {others|my team|the office|the whole house|my family|the lan}; is the
        {server|api} {only|just} {local|for localhost|on 127.0.0.1|reachable from here}; {open|expose} {the api|it|the
        server} {to|on} the {network|lan|outside|internet|world}; why {can|is} only {localhost|my own machine|this
        computer} {connect|able to connect}
        """
    ),
    "apikey": (
        """
        {protect|secure|lock|guard|restrict} {the|my} {server|api|endpoint}{ with a key| with a password| with a
        token| against strangers|}; {password|api key|token|bearer
        token|authentication|auth|authorization|login|access control|credentials|secret key} {for|on} {the|my}
        {server|api|endpoint}; {anyone|everybody|strangers|everyone|nobody else|not everyone|only my team}
        {can|should|shall|may|must not} {use|call|access} {my|the} {server|api|endpoint}; {require|demand|check|ask
        for|enforce} {a|an} {key|password|token|api key|secret}; {does|do} {the server|the api|it|i}
        {need|require|want|check} {a|an} {key|api key|token|password}; {make|let} {clients|callers|users}
        {authenticate|log in|bring a key|send a key|identify themselves}; {unauthorized|unwanted}
        {people|access|users|requests}; {how|where} do i {set|define|choose} {the|an|a} {api key|key|token|secret}{
        for the server|}; --api-key; keep {others|strangers|people} {out|away from my server|from using the api}
        """
    ),
    "sdk": (
        """
        {use|call|connect|point|configure|set up} {the|my} {openai|official openai|python openai|node
        openai|javascript openai} {client|library|sdk|package|module}{ with ossrun| at it| to it| here| against the
        local server|}; {from|in|with} {python|javascript|typescript|node|go|java|c#}{,|} {how do i|how can i|can i}
        {call|use|reach|talk to|query} {it|the server|ossrun|the model|gpt-oss|the api};
        {python|javascript|node|typescript|client|code|openai|sdk} {example|snippet|sample|code|client}{ please| for
        the server| for the api|}; {what|which} {base url|base_url|api_base|url|endpoint url} {do i|should i|must i}
        {use|set|put|give|enter|configure}{ in the client| in openai| in my code|}; {does|will|do} {my|existing|the}
        {openai code|openai scripts|openai client|code for openai|langchain code|sdk} {work|run|still work}{ with it|
        with ossrun| unchanged|}; {import|from} openai; openai {python|node} {package|client|library|sdk};
        {switch|move|migrate|port} {my|existing} {code|app|program} from {openai|chatgpt|the cloud} to
        {ossrun|this|the local server|local}; langchain; base_url
        """
    ),
    "routes": (
        """
        {which|what} {paths|routes|endpoints|urls|methods|apis|http paths|parts of the api} {does|do} {the server|the
        api|ossrun serve|it|you} {have|offer|support|answer|implement|know|provide|serve}; {does|can} {it|the
        server|ossrun} {support|have|offer|implement|know|speak} {the responses api|chat
        completions|/v1/responses|/v1/chat/completions|/v1/models|the chat completions api|both apis|the completions
        endpoint|the models endpoint}; {list|names|overview|table} of {the |all |}{endpoints|routes|paths|urls|api
        paths}; {api|http} {routes|paths|endpoints|reference|documentation|docs|surface}; where do i {post|send} {my
        |chat |}{requests|messages|completions|json}{ to|}; {is|are} {the|} {responses api|chat
        completions|/v1/models} {supported|there|available|implemented}; {which|what} {url|path|endpoint} do i
        {post|send|call} {to|for chat|for completions|for responses}; responses api; chat completions
        """
    ),
    "apieffort": (
        """
        {set|choose|pass|send|change|specify|request} {the |}{effort|reasoning effort|thinking level|reasoning level}
        {in|over|through|via|with} {the api|an api call|a request|my request|http|json|the request body|the openai
        client|python|the sdk|curl}; {effort|reasoning effort|low effort|high effort} {per request|in the
        request|field|parameter in the api|over the api|in json|in the body|for one api call|over http};
        {api|json|request} {field|parameter|key|option} for {the |}{effort|reasoning|reasoning effort|thinking};
        {can|may} {a|an|each|every} {request|api call|client} {choose|set|change|have its own|pick} {the effort|its
        effort|the reasoning effort|effort}; reasoning_effort; {my|the} {client|app|program|python code}
        {wants|needs|should get} {high|low|medium|more|less} {effort|reasoning|thinking}
        """
    ),
    "tools": (
        """
        {can|could|does|will} {it|the model|gpt-oss|ossrun} {call|use|invoke|support|do|handle} {functions|tools|my
        functions|function calls|function calling|tool calls|tool use|tool calling|my own tools|external tools|custom
        functions}; {function|tool} {calling|calls|use|usage|support|definitions|schemas}; {how|where} do i
        {give|pass|define|describe|declare|add|register|hand over} {it |the model |}{functions|tools|a function|a
        tool|my functions|custom tools|function schemas}; let {it|the model} {call|use|run} {my|a|external}
        {code|function|functions|tools|api|database|calculator}; {agents|an agent|agentic work|building an agent|agent
        loops} {with|on|using|on top of} {ossrun|gpt-oss|it}; {is|are} {function calling|tools|tool calls|functions}
        {supported|possible|available|working}; the tools {field|parameter|array}; {plug in|connect|attach} {my own
        |}{tools|functions|a weather api|a database|a search engine}
        """
    ),
}
