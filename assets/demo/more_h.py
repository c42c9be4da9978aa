"""Short of words, in slang, as orders, or with a story around it (ninth phase, see more.py)."""

MORE = {
    "start": """
        {where|how} {to|do i|should i} {start|begin}; {first|next} steps; {getting started|quickstart|quick start|tutorial|
        the basics|crash course|hello world|cheat sheet for beginners}; {just|freshly} {installed|built|downloaded|
        compiled} {it|ossrun|this}{, now what|, what next|. next step}; {ok|so} {it's|its} installed, {what now|now what};
        {newbie|noob|total beginner|first timer} here; walk me through {it|this|the setup}; what {can|should|do} i do
        {with this|here|first|now}; {get|bring} me {going|up to speed|started|up and running}; which commands {exist|are
        there|do i need first}; {all|the most important|main} commands{| of ossrun|}; overview of {the commands|ossrun's verbs}
        """,
    "chat": """
        {lemme|let me} {chat|talk|speak} {with|to} {it|the model|gpt-oss|it now}; {open|start|begin} {a|the} {chat|
        conversation|terminal chat|dialog|repl}; {talking|chatting|speaking} {to|with} {it|the model|gpt-oss}; {interactive|
        terminal} {mode|chat|session|prompt}; {chat|conversation} {now|pls|please}; like chatgpt{| but local| in my
        terminal| on my pc}; {a|some} chat window; {wanna|want to|gotta} {chat|talk} {with|to} {the ai|the llm|it|gpt-oss}
        """,
    "once": """
        {one|a single|just one} {answer|question|reply|shot}{, no chat| without a chat| from the shell| and exit| then quit|};
        {use|call|run} it {in|from} {a|my} {shell script|script|bash script|cron job|pipeline|makefile|ci job|git alias};
        {pipe|feed|send} {a file|stdin|a log|text|a git diff|the output of a command|my notes} {into|to|through} {it|ossrun|
        the model}; non-interactive{| use| mode|}; {one-liner|oneshot|one shot|one off} {question|prompt|call|mode}; {commit
        message from a diff|summarize a file from the shell|stdin and stdout|piping|a unix pipe}; scripting {with it|ossrun}
        """,
    "showreason": """
        print {the|its} {thoughts|reasoning|chain of thought} {too|as well|with the answer|on stderr}; {reasoning|thoughts}
        {in|for} {one shot mode|a script|the one-liner|a single question}; --show-reasoning
        """,
    "stop": """
        {shut up|be quiet|enough|stop it|stop talking|halt|cancel|abort|stop now|stop writing}; {interrupt|abort|cancel|cut
        off|kill} {the|an|a long|this} {answer|reply|output|generation|response}; {answer|reply|it} {too long|won't end|is
        endless|rambles on}, {stop it|how to stop|make it stop}; {halfway|mid-answer|in the middle} {stop|cancel}; {which|
        what} key {stops|cancels|interrupts|aborts} {it|the answer|generation}; esc{| key|}
        """,
    "leave": """
        {exit|quit|leave|close|get out|log out}{| the chat| of the chat| of here| ossrun| this chat| this thing|}; {how tf
        do i|how do i even|how the hell do i} {exit|quit|get out|leave}; {let me|wanna|gotta|need to} {out|exit|quit|leave};
        {done|finished|enough} for today{, how do i quit|, exit|}; ctrl c; /exit; /bye; /quit; back to {the|my} {shell|prompt}
        """,
    "fold": """
        {show|hide|fold|unfold|expand|collapse|reveal} {the|its} {reasoning|thinking|thoughts|thought process|chain of
        thought|analysis}{| in the chat| please| here|}; {what|how} {did|is} it {think|thinking}{| about| there|}; {reasoning|
        thinking} {visible|hidden|folded|gone|on screen}; too much {thinking|reasoning} {text|on the screen|shown}; see the
        {thought process|thoughts|chain of thought}; ctrl t; {where|why} is the {reasoning|thinking}{| hidden| gone|}
        """,
    "chathelp": """
        {keys|shortcuts|key bindings|hotkeys|slash commands|keyboard shortcuts|keybindings}{| of the chat| in the chat| pls|};
        {list|show|tell me} {all|the} {keys|shortcuts|slash commands|commands of the chat|key bindings}; {which|what} {slash
        commands|shortcuts|keys|hotkeys} {are there|exist|work|can i use}{| in the chat|}; what can i {type|press} {in the
        chat|here}; help {inside|in} the chat; slash {commands|what}
        """,
    "new": """
        {new|fresh|clean|empty} {chat|conversation|start|slate|session|topic}{| please| pls| now|}; {clear|wipe|reset|erase|
        clean|forget|flush|drop} {the|this|our|my|all} {chat|conversation|history|context|screen|messages|session}; start
        {over|again|from scratch|afresh|fresh}; /clear; /new; {other|different|new} topic{, forget this|, start fresh|}; forget
        {all that|it all|everything|what i said}
        """,
    "model": """
        {use|take|pick|choose|select|start with|load|run with} {another|a different|the other|a certain|a specific} model;
        {choose|pick|select|name} {the|a} model{| for the chat| at start| on the command line|}; {chat|start|run} with
        {the 120b|the 20b|120b|20b|a specific model}; force {20b|120b|the big one|the small one}; {wrong|not the right} model
        {is loaded|starts|is used}; which model {am i using|is default|does it start}; model {flag|option|choice|selection}
        """,
    "serve": """
        {serve|host|expose|offer|provide} {it|the model|gpt-oss|20b|an api|an endpoint|an openai api|an openai-compatible
        api}{| locally| on my machine| for my app| please| pls|}; {need|want|gimme|wanna have} {an|a|the} {api|local api|rest
        api|openai api|http endpoint|server|openai server|openai endpoint|local openai}; {api|server|openai|http|rest|endpoint}
        {mode|server|please|pls|now|how|access}; {start|launch|boot|fire up|spin up|turn on|run} {the|a|your} {server|api|
        backend|endpoint|port}; {my|our} {app|script|website|code|program|bot} {should|must|has to|wants to} {call|use|talk
        to|query|ask} {it|the model|gpt-oss}; {replace|swap} {openai|the openai api|the cloud|chatgpt} {with|by} {it|a local
        model|something local|ossrun}; {drop-in|local} {openai|openai replacement|replacement for openai}; use it as
        a {server|backend|service|local api}
        """,
    "serve_p": """
        {server|serve|api|listen|endpoint|port} {on|at} {port |}$P{| please| pls|}; {put|move|start|run|have|get} {the|my}
        {server|api|endpoint} {on|at|to} {port |}$P; port $P{| please| for the server| for the api|}; serve $P; {make it|let it|
        it should} listen {on|at} {port |}$P; 127.0.0.1:$P; {want|need} {it|the api|the server} on {port |}$P
        """,
    "port": """
        {another|a different|other|custom} port{| number| please| for the server|}; {change|set|choose|pick} {the|a} port{|
        number| of the server|}; {8000|port 8000} {is|} {not free|not ok|bad|used by my other app}{, another one|, can i
        change it|}; which port {is it|does it use|is default|does the server use}; default port
        """,
    "host": """
        {reach|use|access|call|open} {it|the server|the api} from {my phone|another pc|another computer|the lan|my tablet|
        outside|the office|a different machine|other devices|my other laptop}; {expose|open|share} {it|the server|the api|the
        port} {to|on|in|with} {the network|my lan|my network|my colleagues|everybody|the world|other machines}; {bind to|listen
        on} {0.0.0.0|all interfaces|every interface|all addresses|the network}; {lan|network|remote} access; {connection
        refused|cannot connect} from {another machine|my phone|my other pc}; --host
        """,
    "apikey": """
        {protect|secure|lock} {the|my} {server|api|port|endpoint}{| with a key| with a password| from strangers|}; {require|ask
        for|set|demand|need|add} {an|a} {api key|key|password|token|secret|bearer token}{| for the server| for clients|};
        {keep|lock} {strangers|others|people} out{| of my server| of the api|}; {authentication|auth|password|api key|
        authorization}{| for the server| for the api| please| how|}; --api-key-file; OSSRUN_API_KEY; only {people|clients} with
        {a key|the key|a password} {may|can|should} use it
        """,
    "sdk": """
        {openai|the openai} {python|node|js|javascript|typescript|go} {sdk|client|library|package}{| please| example| with
        ossrun| how|}; {python|node|go|javascript} {example|code|snippet|client}{| for the api| for the server|}; {base url|
        base_url|OPENAI_BASE_URL|baseURL}; what {base url|base_url|url|api key} {do i set|to use|goes in the client|for the
        client}; call {it|the api|the server} from {python|node|javascript|my code|go|rust|java|c#}; import openai
        """,
    "routes": "{routes|paths|endpoints|urls}{| of the api| of the server| please|}; {which|what|all} {routes|paths|endpoints|urls} {are there|exist|does it have|does the server answer|are served}; /v1/responses; /v1/chat/completions; chat completions{| api|}; responses api; {list|show} {the|all} {routes|endpoints|paths}",
    "apieffort": "{effort|reasoning effort|thinking level} {over|in|via|through} {the|} {api|http|a request|json|the sdk|openai client}; reasoning_effort; {set|change|raise} the {effort|reasoning} {per request|in the request|in my request|from python|from code}",
    "tools": "{function|tool} {calling|calls|use}{| support| over the api| with my own functions|}; {my|own|custom} functions{| as tools| in the request|}; can the model call {my|a} {function|functions|code|api}; {functions|tools} in the {request|api|json}; tool_choice; parallel tool calls",
    "pull": """
        {download|get|fetch|pull|grab|install} {a|the|some|any|me a} {model|weights|real model|llm|gpt-oss|good model|proper
        model|checkpoint}{| pls| please| now| to my disk| first| for me|}; {gimme|give me|i want|i need|wanna have} {the|a|
        real} {weights|model|real model|real one|actual model}{| on my disk| on this machine| here|}; {model|weights} {download|
        on my disk|please|pls}; {no|there is no} model here{, how do i get one|, get one|}; downloading {a model|models|the
        weights|gpt-oss}; how do models get {here|on my disk|onto my machine}; get rid of the demo and get a real {one|model}
        """,
    "pull20": """
        {<wish>|get me|gimme|download|fetch|pull|install|grab} {the|} <small>{| on my disk| on my machine| onto my ssd| pls| please|
        to my disk| first|}{, how|, how do i do it|, what do i type|}; <small> {please|pls|download|on my disk|here|now}
        """,
    "pull120": """
        {<wish>|get me|gimme|download|fetch|pull|install|grab} {the|} {<big>|larger gpt-oss|bigger gpt-oss|large gpt-oss|big gpt-oss|
        120 billion one|largest one|strongest one|best one}{| on my disk| on my machine| onto my ssd| pls| please| to my disk|
        first|}{, how|, how do i do it|, what do i type|}; {<big>|the larger gpt-oss|the largest} {please|pls|download|on my
        disk|here|now}
        """,
    "resume": """
        {download|pull|the download} {broke|stopped|died|failed|was interrupted|hung|aborted|got stuck|crashed|cut off}{| at 60
        percent| half way| because of the wifi| again|}{, start over|, what now|, must i start again|, from zero|, go on|};
        {continue|resume|restart|finish|go on with} {the|a|my} {download|broken download|pull|interrupted download}; {wifi|
        internet|connection} {dropped|broke|went down} during {the|} {download|pull}; half {a|the} {download|model|file}; pause
        {a|the} download
        """,
    "size": """
        {how many|how much} {gb|gigabytes|gigs|space|disk space|data} {is|does|will} {the download|20b|120b|the model|it}{|
        take| need| have|}; {download|file|model} {size|sizes}{| of 20b| of 120b| in gb|}; {how big|how large} {is|are} {the
        download|20b|120b|the files|the weights|it|they}; {disk|space} {needed|required|for 20b|for the download}; fits on a 32
        gb {stick|disk}
        """,
    "where": """
        {where|in which folder} {are|is|do|does} {the|my|it|they} {weights|models|model|files|download|model files} {stored|
        kept|saved|go|end up|put|downloaded to|live|}; {weights|model|models|cache} {folder|location|path|directory|place}; find
        {the|my} {weights|model files|download}{| on disk|}; path {of|to} the {weights|model}
        """,
    "hfhome": """
        {store|put|keep|save|move} {the|my} {weights|models|cache|model|downloads} {on|in|to} {another disk|my big disk|an
        external drive|a different folder|/data|drive d|an nas|my second ssd|another place}; {change|set|move} the {cache|model|
        download} {folder|location|path|directory|dir}; {my|the} {home|system|c|root|boot} {disk|drive|partition} is {full|too
        small|tiny}; HF_HOME; {other|another|different} {cache|model|download} {folder|disk|place}
        """,
    "list": """
        {list|show|see|display} {all|my|the|the downloaded|the installed|the local} {models|weights|downloads|checkpoints};
        {models|weights} {here|on disk|on this machine|installed|downloaded|i have}; {which|what} {models|ones} {do i have|did
        i download|are here|are installed|are on disk|have i got|are downloaded}; did i {already|} {download|pull|get} {20b|120b|
        it|anything|any model}; do i {already|} have {20b|120b|a model|any model|the big one}; inventory
        """,
    "rm": """
        {<del>} {a|the|my|this|that|an old|one} {model|weights|20b|120b|old model|unused model|model i no longer need|model that
        i no longer need|big model|small model|model i don't use|model from my disk|gpt-oss files|download}{| again| pls| please|
        from disk| to free space| to get space back|}; {free|free up|make|get back|reclaim|need} {space|room|disk space|my disk|
        some space|gigabytes}; {don't|do not|no longer} need {the|that|this} {model|20b|120b|weights|big one}{| any more| anymore|};
        {20b|120b|the model|this model} {must go|has to go|away|off my disk|in the trash}; {disk|ssd|drive} {is|} full; deleting
        {a model|models|weights|20b}; uninstall {a model|20b|120b|the weights}
        """,
    "memory": """
        {how much|how many gb of|what} {ram|memory|vram|gigs of ram} {do i need|does it need|for 20b|for 120b|does 20b take|is
        required|does 120b want|is enough|must i have}; {is|are} {8|16|24|32|64|96|128} {gb|gigs|gigabytes} {ram|of ram|memory|
        vram|of memory} {enough|ok|sufficient|too little}{| for 20b| for 120b|}; {ram|memory|vram} {needed|required|requirement|
        requirements|for 20b|for 120b}; {i have|i've got|with|my pc has} {8|16|24|32|64|128} {gb|gigs} {ram|of ram|memory|vram|
        of memory}{, does 20b fit|, enough|, what fits|, is that enough|, which model|}; minimum {ram|memory|requirements}; {does|
        will} {20b|120b} fit{| in 16 gb| in 24 gb| in my ram| in 64 gb|}
        """,
    "models": """
        {which|what|other} {models|llms|model families|models are there} {are there|exist|can it run|are supported|does it
        know|does it support|can i use|can it load}; {llama|mistral|qwen|gemma|deepseek|phi|llama 3|mixtral|gpt-4|claude|kimi}{|
        support| too| models|}; {can|does} it {run|support|load|do} {llama|mistral|qwen|gemma|deepseek|phi|mixtral|other
        models}; {supported|available|possible} models; {list|name} the {supported|available} models; model {catalogue|zoo|
        choice}
        """,
    "compare": """
        {20b|small|the small one} or {120b|big|the big one}{, which|, what should i take|, what's better|}; {which|what} model
        {should i take|is better|is best|for me|do you recommend|suits me|is smarter|is faster}; {20b|120b} {vs|versus|
        compared to|against|or} {120b|20b}; {difference|differences} between {20b|the two} and {120b|the models}; {better|best|
        smartest|fastest} model; recommend {a|me a} model
        """,
    "effort": """
        {effort|reasoning|thinking} {level|levels|setting|knob|slider|amount}; {how|where} {to|do i|can i} {set|change|tune|
        control} {the|its|} {effort|reasoning|thinking|reasoning effort|thinking effort}; {low|medium|high} {effort|reasoning|
        thinking}{| what is that|}; {levels|degrees|amount} of {thinking|reasoning}; more or less thinking
        """,
    "low": """
        {make it|let it|have it} {think|reason|ponder} {less|shorter|faster|only a little|not so long|not so much}; {less|
        shorter|minimal|quick|little} {thinking|reasoning|effort}{| please| pls|}; {stop|quit} {overthinking|thinking so long|
        pondering}; {it|the model} {thinks|ponders|reasons} {too long|too much|forever|for ages}{, make it quicker|, can it
        think less|}; {faster|quick|quicker|snappy|instant} {answers|replies|responses}{| please| pls| with less thinking|};
        {don't|do not} {think|reason} so {long|much|hard}; overthinks everything
        """,
    "high": """
        {make|let|have} {it|the model|the ai} {think|reason|ponder|work|try} {harder|more|longer|deeper|more deeply|better|
        more carefully|properly|really hard|as hard as it can}; {think|reason|try} {harder|deeper|longer|more carefully|really
        hard}{| please| pls|}; {more|deeper|maximum|max|better|longer|full} {thinking|reasoning|effort|brain power|thought}{|
        please| pls|}; {highest|strongest|best|maximal} {effort|reasoning|thinking|quality}; {it|the answer} is {too shallow|
        too superficial|not thought through|sloppy}{, think more|, make it think harder|}; {hard|difficult|tricky} {problem|
        math problem|puzzle|question}{, give it time to think|, it should think long|, use all its brain|}
        """,
    "effortchat": """
        {change|switch|set|raise|lower|toggle} {the|} {effort|reasoning|thinking|reasoning effort} {while|without|in|during|
        inside} {chatting|leaving the chat|the chat|a chat|a running chat|the session}; {key|shortcut|hotkey} for {the|}
        {effort|reasoning effort|thinking level}; shift tab; /effort
        """,
    "device": "{cpu or gpu|gpu or cpu|choose the device|pick the device|which device|device selection|--device|force the gpu|use my gpu|run on the gpu|gpu please|make it use the gpu|put it on the graphics card}{| please| how|}",
    "cpu": "{cpu|processor} {only|please|mode|not gpu}; {don't|do not|never} use {the|my} {gpu|graphics card|card}; {leave|keep} {the|my} {gpu|card|graphics card} {alone|free|for gaming|idle}; {force|run on|use only|stay on} {the|} {cpu|processor}; without {touching|using} {the|my} {gpu|card}; no gpu{| please| mode|}",
    "gpu": "{second|other|first|third} {gpu|card|graphics card}{| please| instead|}; {use|take|pick|choose|run on} {gpu|card} {0|1|2|number 1|two|three}{| only|}; {which|one} of my {gpus|cards|two gpus}; CUDA_VISIBLE_DEVICES; only {one|the second} of {two|my} {gpus|cards}",
    "threads": "{cpu threads|threads|cores|cpu cores|number of threads|thread count}{| please| how many|}; {use|take|limit it to|run on} {4|8|two|half of my|all|fewer|16|only 2} {cores|threads|cpu cores}; {it|ossrun} {uses|eats|takes} all {cores|my cores|my cpu}; leave {two|some} cores {free|for me}; how many {threads|cores} does it use",
    "context": "{longer|bigger|larger|smaller|shorter|more} {context|context window|context length|window}{| please| pls|}; {set|change|raise|increase|limit|reduce|lower} {the|} {context|context window|context length|window size|num_ctx}; {long|big|huge} {documents|files|prompts|texts} {don't fit|are cut|are too long}; num_ctx; --max-model-len; ctx size",
    "temperature": "{temperature|temp|randomness|creativity}{| please| how| 0| 0.7|}; {more|less} {creative|random|wild|boring|deterministic|variety|imaginative} {answers|output|text|replies|please}{| pls|}; {set|change|lower|raise} {the|} {temperature|temp|creativity|randomness}; {too|so} {random|creative|boring|wild}{, calm it down|, change that|}; same answer every time{| without a seed|}",
    "topp": "{top p|top-p|nucleus sampling|top_p|nucleus|topp}{| please| how| 0.9| setting|}; cut off unlikely {tokens|words}; {set|change} {top p|top-p|nucleus sampling}",
    "seed": "{seed|random seed|fixed seed|seed 42}{| please| how|}; {reproducible|repeatable|same} {answers|results|output|text} {every time|again|with a seed|please}; {set|fix|give} {a|the} {seed|random seed}; get the {exact same|same} {text|answer} {twice|again}",
    "maxtokens": "{shorter|short|brief|limited} {answers|answer|output|replies}{| please| by force| with a limit|}; {limit|cap|cut|bound} {the|} {answer|output|length|tokens|answer length|number of tokens}; {max|maximum} {tokens|length|answer length|output}; stop after {100|200|50|500} {tokens|words}; --max-tokens; max_tokens",
    "system": "{system prompt|system message|custom instructions|instructions|persona|own instructions|role}{| please| how| setting|}; {make it|let it|have it} {talk like a pirate|answer in german|always answer in french|be polite|play a role|act as a teacher|behave like <person>}; {give|set|add|change} {it|the|a} {instructions|a role|a persona|system prompt|a system message|rules}; always {answer|speak|reply} in {spanish|german|one sentence|rhymes}; /system",
    "json": "{json|machine readable|parsable} {output|please|result|from the chat|for scripts|mode|on stdout}; {output|print|result|answer} {as|in} json; jq; parse {the|its} output {in|with} {a script|my program|jq}; json {from|for} {list|doctor|bench|the command}; --json",
    "configfile": "{config|configuration|settings} {file|path|location}; {save|keep|store|remember|persist} {my|the} {settings|flags|options|defaults|preferences}{| for good| permanently| between runs|}; {default|permanent} {flags|options|settings|effort|port}; {don't|do not} want to type {the|these} {flags|options} {every time|again and again}; config.yaml; dotfile; where {do|can} i {put|set|keep} {defaults|my defaults|settings}",
    "config": "{another|a different|other|second|own|several} config{| file| files|}; --config; {use|take|load|read} {a|another|this|my} {config|configuration|yaml|settings} file",
    "doctor": "{check|test|inspect|diagnose|examine} {my|the|this} {machine|system|setup|hardware|gpu|computer|box|pc|installation}{| pls| please|}; {gpu|card|graphics card|hardware} {not found|not detected|not used|ignored|missing|invisible|check}; {something|it} {is|does} {wrong|not work|broken|weird}{, diagnose it|, help|}; {troubleshoot|diagnosis|diagnostics|health check|system check|debug info|sanity check}; {which|what} {gpu|hardware|device} {does it see|is found|do i have|is used}; why {no gpu|cpu only|is my gpu idle|not my gpu}; doctor; what would run {here|on this machine}",
    "selftest": "{self test|selftest|self-test|kernel test|verify the math|check the kernels|prove it computes right|test the kernels}{| please| how| pls|}; {wrong|garbage|weird|nonsense} {numbers|output|results|text} from {my gpu|the gpu|the card}; {does|can} it {compute|calculate} {right|correctly}{| here| on this cpu|}; --selftest",
    "bench": "{how fast|what speed|speed|tok/s|tokens per second|tps}{| is it| here| on my machine| please| do i get|}; {benchmark|speed test|measure|bench|time it|stopwatch}{| it| my machine| the model| please| pls|}; {measure|test|find out|clock} {the|my} {speed|tokens per second|performance|throughput|tok/s}; run a {benchmark|speedtest|speed test}",
    "slow": "{so|too|very|super|painfully|really|damn} {slow|sluggish|laggy}{|, help|, make it faster|, what can i do|, why}; {speed it up|make it faster|faster please|more speed|go faster|accelerate it}; {it|this} {crawls|is a snail|takes forever|lags|is slow as hell}; 1 token per second; {why|how come} {so slow|is it slow|does it take so long}; {only|just} {2|3|1} {tokens per second|tok/s|words a second}",
    "oom": "{out of memory|oom|oom killed|not enough memory|memory error|cuda out of memory|killed}{| error| help| again| what now|}; {it|the model|20b|120b} {doesn't|does not|won't|will not} fit{| into memory| in my ram| here|}; {ran|runs|running} out of {ram|memory|vram}; {uses|needs|takes} too much {ram|memory|vram}; {swapping|my machine swaps|ram full|memory full|vram full}",
    "eval": "{evaluate|grade|score|test the quality of|rate|judge} {it|the model|20b|120b|a model}; {eval|evals|evaluation|quality test|accuracy test|gpqa|aime|benchmark of quality|exam}{| please| how|}; how {smart|good|accurate|clever} is {it|20b|120b|the model}; {score|accuracy|grade} {on|of} {gpqa|aime|tests|questions|20b}",
    "harmonycmd": "{tokenize|encode|decode|detokenize|count tokens|count the tokens|token count|token ids|tokens of a text}{| please| a text| of my prompt| how|}; {see|show|print} {raw|the raw} {tokens|prompt|harmony}; how many tokens {is|are|has} {this|my text|that|a prompt}; tokenizer; {render|parse} {a conversation|harmony|messages}",
    "version": "{version|which version|ossrun version|version number|what version|release number|--version|version info}{| please| pls| is this|}; {am i|is this} up to date; which {build|commit|release}",
    "completion": "{tab completion|shell completion|autocomplete|bash completion|zsh completion|fish completion|completions|tab}{| please| pls| how| setup| in my shell|}; complete {commands|flags} {with tab|in zsh|in bash|in fish}; manual page; man page; {tab|the tab key} {does nothing|doesn't complete}",
    "harmony": "{harmony|harmony format|channels|harmony channels|prompt format|chat format|chat template}{| please| explain| what is it| of gpt-oss|}; what {is|are} {harmony|the harmony format|channels|analysis and final|the commentary channel|the channels|the analysis channel}; {which|what} {prompt|chat} {format|template} {does it use|is used|does gpt-oss use}",
    "mxfp4": "{mxfp4|fp4|4 bit|4-bit|quantization|quantisation|weight format|quantized weights}{| explain| please| what is it|}; {how|in what format|in how many bits} are {the|} {weights|experts} {stored|quantized|saved|compressed}; what {is|does} {mxfp4|fp4|4-bit|quantization|quantized}{| mean|}; {are|is} {the weights|it|the model} quantized; how can {20b|it|21 billion parameters} {fit in|be only} {14 gb|16 gb|13.8 gb}",
    "private": "{privacy|private|data protection|telemetry|gdpr|confidential|spying|tracking|data}{| please|, is it safe|?| concerns|}; {does|do|will} {it|you|ossrun} {send|upload|leak|share|phone|collect|log} {my data|data|anything|home|what i type|my prompts|telemetry|my chats}{| anywhere| to openai| to the cloud| to a server|}; {is|are} {my data|my prompts|it|my chats|what i write} {safe|private|sent away|uploaded|secure|local}; {who|does openai|does anybody} {sees|see|reads|read} {my chats|what i type|my prompts|this}; {cloud|local} or {local|cloud}; {confidential|company|secret|medical} {data|documents}{, is that ok|, safe|}; {works|does it work|run|can it run} {offline|without internet}{| once downloaded| after the download|}",
    "license": "{license|licence|apache|terms of use|legal|copyright}{| please| what| of the model| of gpt-oss|}; {can|may} {i|we|my company} {use|sell|ship|deploy} {it|this|the model|gpt-oss} {commercially|at work|in a product|for money|in my company|for free}; {is|does} {it|this|ossrun|gpt-oss} {free|cost anything|cost money|open source|paid}; {price|cost|costs|how much money|subscription|fee}{| please|?|}; what does {it|this|ossrun} cost; do i {have to|need to} pay",
    "hardware": "{which|what|supported} {gpus|cards|graphics cards|hardware|gpu}{| work| are ok| please|}; {nvidia|amd|radeon|rtx 4090|rtx 3060|rx 7900|h100|mi300|cuda|rocm|geforce|rtx 5090|a100}{| ok| supported| works| support| please|}; {system|hardware|minimum} requirements{| please|}; {do|must} i {need|have} {cuda|rocm|drivers|a toolkit|an nvidia card}; does {it|ossrun} {support|like|use|know} {nvidia|amd|radeon|rtx|cuda|rocm|intel arc}",
    "vllm": "{cluster|several machines|multi node|two servers|scale out|kubernetes cluster|more machines|ten nodes|distributed}{| please| how| support|}; {run|spread|split|scale} {it|the model|120b} {over|across|on|to} {several|two|many|multiple|ten} {machines|servers|nodes|computers|hosts}; {more than one|multiple|several} {machine|machines|nodes|servers}",
    "what": "{what's|what is|whats|wtf is|explain|describe} {this|ossrun|this thing|this program|this tool|ossrun for}; {what|why} {can|does} {ossrun|this|it} {do|offer}; ossrun{| in one sentence| explained| in short|}; {purpose|point|idea} of {this|ossrun|the tool}; what {am i looking at|did i install|is this for}",
    "who": "{who|what} {are|r} {you|u}{| really| actually|}; {you|u} {real|a bot|an ai|human|chatgpt|gpt-5|gpt-oss|a person}; {are|r} {you|u} {gpt-oss|the real gpt-oss|chatgpt|gpt-4|an ai|a robot|20b|smart|human|claude|the real model|a real model|llama}; {your|ur} name; {which|what} model {are you|am i talking to|is this|is answering|r u}; who am i {talking|speaking|chatting} {to|with}; introduce yourself; {how|why} are you so {small|dumb|stupid|limited|tiny}; what {can|do} {you|u} {do|know}; how {big|small|smart|old} are you; what are you{| good for| able to do| capable of|}; tell me about yourself",
    "greet": "{hi|hello|hey|yo|hiya|howdy|sup|heya|hallo|greetings|good morning|good evening|good afternoon|morning|evening|hey there|hi there|hello there|what's up|whats up|how are you|how r u|how do you do|how is it going|how's it going|nice to meet you|hey buddy|hello friend|hi bot|anyone there|are you there|hello world|good day|ahoy|g'day|hey ossrun|hi ossrun|how are you doing|you there|hey hey}{|!|!!|,|?| :)| ossrun| my friend| today| dear model| again}",
    "thanks": "{thx|thanks|ty|thank you|cheers|much appreciated|great|perfect|awesome|cool|nice|super|excellent|good job|well done|wonderful|brilliant|lovely|tysm|great job|great help|appreciate it|many thanks|you rock|helpful|got it|that worked|it works|works now|good answer|amazing|you're great|you are the best|fantastic|that helped|that helps|very helpful}{|!|!!| thanks| thank you|, thx|, that helps| :)| a lot|, it works now|, that was it| so much}",
    "bye": "{bye|goodbye|cya|see you|see ya|later|good night|farewell|bye bye|ciao|so long|take care|i'm off|gotta go|got to go|i have to go|talk to you later|ttyl|until tomorrow|see you tomorrow|that's all for today|have a nice day|signing off|night|laters|i'm leaving|time to go|bye for now|over and out|adios|i go to bed now}{|!|.|!!| then| now| :)| ossrun| my friend|, thanks}",
}
