"""More ways to ask about the chat and the server, for the second training phase (see more.py)."""

MORE = {
    "start": (
        """
        {okay,|so,|} {it's|it is} installed{.|,} {and now|what comes next|where do i go from here}; {show|walk} me
        {around|the ropes|through it}; what {would|do} you {recommend|suggest} {to do first|as a first step|for a
        start}; {a|} guide for {newbies|beginners|new users|the impatient}; first time {user|here}{,|.} {<how>|what do
        i run}; how does one {begin|start out|get going}; {which|what} {things|tasks} can {i|one} do with {ossrun|it};
        what are {my|the} options {here|with this tool}; {how|in what order} do i {set things up|set everything up|get
        it running}; {what is|list} everything {ossrun|it} can do; {initial|first} setup
        """
    ),
    "chat": (
        """
        where {does|can} one {type|write|ask|chat}; i {just |}want to {talk|chat} {a little|a bit|with someone|to the
        machine|to the bot}; {<wish>} {a conversation|a talk|to talk|a dialog}{ with it| with the model| in my
        terminal| in the console| in a shell window|}; {open|bring up} {the|a} {prompt|dialog|conversation|terminal
        window for chatting}; {how|where} do i {put|enter|write} my {question|questions|text|message}; talking
        {to|with} {the model|it|gpt-oss}{ in a terminal| from a console| in my shell|}; {<canit>} {hold a
        conversation|have a conversation|talk with me|chat with me}; let's {talk|chat with the model|open the chat};
        {is there|where is} {something|a place|a window} {to|where i can} {type|write|chat|ask}; {i'd|i would}
        {love|like} to {chat|speak} with {the model|it} {right here|in the command line|in my terminal}
        """
    ),
    "once": (
        """
        {<wish>} {only |just |}{one|a single} {answer|reply|line}{ and then it should exit| and no chat| from my
        shell| on the terminal| without opening a chat|}; {run|call|use} it from {a|my}
        {bash|shell|makefile|cron|perl|shell} {script|job|}{ and capture the output| and save the answer| with one
        question|}; {<canit>} {answer|reply} {a question|something} {directly|straight away} {on the command line|in
        the shell|in the terminal}; {echo|cat|grep} {something|a file|text} {piped|and pipe it} {into|to}
        {ossrun|it|the model}; no {interactive|chat} {mode|session|window}, {just|only} {the answer|one answer|one
        reply}; {ask|put} {it |}{one|a single|just one} question {and leave|and quit|from the command line|from bash};
        pass {the|a|my} {question|prompt} {as an argument|on the command line|behind the command};
        {summarize|translate|explain} {a|my|this} file {through a pipe|with cat|from stdin|via stdin}; print
        {just|only} the {answer|reply}{ to the terminal| and exit|}; feed {it |}{a|the} {file|log|text}
        {from|on|via|through} {stdin|standard input|a pipe}
        """
    ),
    "showreason": (
        """
        i {get|see} only the {answer|reply}{,| and} not the {reasoning|thoughts|thinking} {on stdout|with the one shot
        command|in my script|when i ask once}; {the|its} {thoughts|reasoning|thinking} {of|for|in} {a|the} {single|one
        shot|one-shot|scripted|piped} {answer|reply|question|call}; {print|show|add} {the
        |}{reasoning|thoughts|thinking} {too|as well|also} {when|if} i {ask|pass|pipe} {a|one|a single} question;
        {one|the single|a single|the one-shot} {answer|reply|shot} {with|plus|and} {its |the
        |}{reasoning|thoughts|thinking}
        """
    ),
    "stop": (
        """
        it {writes|talks|answers|types|babbles|goes} on and on{,|.| and} {stop it|<how>|how can i stop that|make it
        end}; {shut|hush|be quiet|enough|stop talking|hold on|wait}{| now| please}; {<wish>} to
        {break|cut|end|stop|interrupt} {it|the answer|this} {off|early|before it is finished|halfway|in the middle};
        {while|when} it {is writing|is answering|answers|types|is typing|talks}{,|} {how do i|can i|what key do i
        press to} {stop|interrupt|cancel|end} {it|that}; the {answer|reply|output|text} is {wrong|going
        wrong|useless|too long}{,| and} {stop it|abort|i want it to end now|how do i cancel};
        {abort|cancel|interrupt|halt|pause} {it|this|the generation|the current answer|what it is writing|the model};
        {which|what} {button|key} {do i press|must i press|should i press} {to make it stop|to stop it|to interrupt|to
        cancel|when it talks too much}
        """
    ),
    "leave": (
        """
        {i'm|i am} {finished|done here|stuck in the chat|inside the chat}{,| and} {how do i get back|how do i close
        it|want out|how to get to my shell}; {end|close|shut} {everything|the window|it down|the terminal chat};
        {which|what} {key|keys|button} {do i press|must i press|should i press|is it} to {leave|quit|exit|get
        out|close it|end the program}; {let me|i want} out; {how|where} is the {exit|way out}; {get|go} {back|out}
        {to|into} {the|my} {shell|command line|terminal|bash}; {i want to|how do i} {close|end|stop using} {the
        program|ossrun|it|the app}
        """
    ),
    "fold": (
        """
        {<wish>} to {see|read|watch|hide} {what|how} it {thinks|is thinking|thought|reasons}{ in the chat| in the chat
        window| before it answers|}; the {thinking|reasoning|thoughts} {text|part|block} {is|are} {in the
        way|<bad>|hidden|folded|distracting|not shown|ugly|always open}{ in the chat|};
        {open|unfold|expand|reveal|hide|close|collapse} the {thoughts|thinking|reasoning}{ block| part| lines|
        again|}; {hidden|gray|folded} {thinking|thoughts|reasoning}{ in the chat|}{, how do i open it|, how can i see
        it|}; {which|what} {key|button} {makes|opens|unfolds|reveals|hides|closes} {the thinking|the thoughts|its
        reasoning|the reasoning part}; i {don't|do not} want to {see|read} {the|its} {thoughts|reasoning|thinking}{ in
        the chat| all the time| on screen|}; can {the|its} {thoughts|thinking|reasoning} be {hidden|shown|folded|made
        visible|seen}{ in the chat|}
        """
    ),
    "chathelp": (
        """
        what {can|could|may} i {type|enter|write} {after|behind|with} {the|a} slash{ in the chat|}; {which|what}
        {slash|chat} commands{ are there| exist| can i use|}; {the|all} {things|commands} {starting with a slash|that
        begin with a slash|i can type in the chat}; {i forgot|i don't know|remind me of|what are} the {chat
        commands|slash commands|shortcuts|keys}{ of the chat| in the chat|}; {help|hints|instructions} {while|when}
        {chatting|i am in the chat|in the chat}; what {else |}can i do {inside|in} the chat{ window|}; a
        {list|table|overview} of {the |}{chat commands|slash commands|shortcuts|keys}
        """
    ),
    "new": (
        """
        {wipe|erase|drop|throw away|delete} {what we said|our conversation|everything said so far|the talk|all
        messages|the history}; {i want|let's have|time for|give me} a {fresh|new|clean|blank}
        {start|conversation|chat|page|topic}; {<canit>} forget {it all|what i told it|the last messages|this
        conversation|the previous topic}; {another|a different|the next|new} {topic|subject|theme}{ please| now|,
        forget the old one|}; {restart|reset|clear} {everything|it|the talk|the memory|this chat}; {from|at}
        {scratch|zero|the beginning}{ again| please|}; {let us|let's|can we} {start|begin} {over|again|from
        zero|anew}; {it|the model} {still remembers|mixes in|keeps} {my|the} {old|earlier|previous}
        {questions|messages|topic}
        """
    ),
    "model": (
        """
        {i have|there are} both {models|sizes}{ downloaded| installed| here| on disk|}{,| and} {how do i pick
        one|which one runs|how do i choose|i want the big one now|how do i use the other}; {take|use|run|start} the
        {other|bigger|smaller|second} {model|one} {this time|instead|for this chat|now}; {which|what} {of the two
        |}model {answers me|am i using by default|is chosen|does it start with|gets used}; {specify|name|say|tell it}
        {which|the} {model|one}{ to use| to run| it should take|}; {change|swap|exchange|replace} the model{ for
        another| when i start it| at the start| it uses|}; {chat|serve|run} with {the|a}
        {specific|particular|other|certain} model; {the|a} {command line |}{flag|option} {for|to choose|to pick|that
        selects} {the|a} {model|other model}; start {with|using} {the 120b|the 20b|20b|120b} {instead|and not the
        other|this time}
        """
    ),
    "serve": (
        """
        {<wish>} {a|an} {<srv>}{| for <prog>| on my machine| i can call from code| like the one of openai}; {<prog>}
        {speaks|talks|uses|knows|only knows|expects|wants} {the openai api|openai's api|http|openai|an openai
        url|rest}{, can it use this|, <how>|, how do i connect it|}; {run|use|offer|host} {it|the model|gpt-oss} as a
        {service|server|backend|web service|daemon|local service}; {hook|plug|wire} {<prog>} {up |in |}{to|into}
        {it|the model|this|ossrun}; {i am|i'm|we are} {writing|building|developing|coding} {an app|a program|a web
        page|a bot|software|a tool|a plugin}{,| and} {it needs to|it should|it has to|it must} {call|ask|use|reach}
        {the model|an llm|it|a local model}; {<canit>} {act|work|serve|be used} {as|like} {a|an} {<srv>};
        {over|via|through} {http|the network|rest|a url|an api}{, can i reach the model|, can programs use it|};
        {something|a thing|software} {like|compatible with|that behaves like} the openai {api|server|cloud}{ but
        local| on my own machine|}; {does it|does ossrun|can it} {talk|speak|understand} {http|the openai
        protocol|openai|rest}; {requests|calls} {from|by} {<prog>}; {which|what} command {is for|runs|does} the
        {<srv>}; {other|several} {programs|applications|tools|scripts|processes} {want|need|would like|should be able}
        to {use|reach|call|share} {the model|it|gpt-oss}
        """
    ),
    "serve_p": (
        """
        {use|take|try|pick|i prefer|i want|make it|set it to|rather|let it be} {port |}$P{ for the server| for the
        api| please| instead of 8000|}; 8000 is {not free|already used|already taken|in use|occupied|used by something
        else|gone}{ here| on my machine| on this box|}{,|.} {take|use|i need|i'd like|give me|let's use|make it|i
        want|can i have} $P{ instead| please|}; the {<srv>} {should|must|shall|has to|ought to} {listen on|use|run
        on|be on|answer on|sit on} {port |}$P; {can|could} {i|we} {have|get|move|put} the {server|api|endpoint}
        {on|to} {port |}$P; {let|make|have} the {server|api|endpoint} {listen|run|answer|work} {on|at} {port |}$P{
        instead| please|}; {another|a different} port{,| please,|:} {say|maybe|namely|for example} $P
        """
    ),
    "port": (
        """
        {8000|the default port|that port|my port} {is|was} {not free|already used|taken by another program|occupied|in
        use}{,|.} {<how>|what else can i use|can i change it|how do i take another}; {which|what} {number|port number}
        {does|do} {the server|it|i} {use|listen on|need|take}; {move|put} the {server|api} {to|on} {another|a
        different} port; {another|some other|a free|a different} port {for|of} the {server|api}{ please|}; can {the|i
        change the} port {be changed|number}
        """
    ),
    "host": (
        """
        {<user>} {wants|needs|would like|tries|should be able} to {use|reach|call|connect to|access|try} {my|the}
        {<srv>|model}{ from {his|her|their|another} {<machine>|phone}| over wifi| too| as well| over the network|};
        {can|could|may} {<user>|others|other people|somebody else|two people|everybody at home} {use|reach|connect
        to|access} {it|the server|my server|the api} {from {his|her|their|another} {<machine>|phone|desk}|over the
        network|over wifi|too|as well}; {in|inside|across|over} {our|the|my} {network|lan|wifi|office|house|home
        network}{, can others use the server|, is the server visible| it cannot be reached|}; {it|the server} {only
        |}{listens|answers|works} {only |}{on localhost|on 127.0.0.1|locally|on this machine}{, how do i change that|,
        but i need it in the network|, <how>|}; {open|make|put} the {<srv>} {up |available |}{to|for|in} {the
        world|the network|my house|everybody|all|the whole office|the rest of the team}; {the|my} {tablet|phone|second
        computer|other laptop|desktop} {cannot|can't|should|must|wants to} {find|reach|see|use|connect to} {the|my}
        {server|api|endpoint}; {serve|offer|give} {it|the api} to {other|all|several}
        {machines|people|computers|users}{ in the network|}
        """
    ),
    "apikey": (
        """
        {i am afraid|i fear|what if|i worry} {that |}{anybody|someone|strangers|others|hackers} {can |could |may |will
        |}{use|misuse|abuse|call} my {<srv>}; {only|just} {i|my team|people i trust|friends|known people|we}
        {should|may|must|can} {use|call|reach|access} {it|the server|the api|my endpoint}; {put|hang|add|set} a
        {lock|password|key|token|secret} {on|to|before|in front of} {it|the server|the api|my endpoint}; {is|does} {a
        password|a key|some kind of login|authentication|security} {possible|exist}{ for the server| on the api|};
        {security|access} {of|to} {the|my} {<srv>}; {keep|shut|lock} {everyone else|others|intruders|bots|unknown
        people} out{ of my server| of the api|}; {everyone|anybody|whoever} {who |that |}{calls|uses|connects to}
        {the|my} {server|api} {must|should|has to} {know|have|send|give} a {key|password|secret|token};
        {bearer|access|secret} {token|key}s{ for the server| on the api|}; unauthorized {access|use|requests|people}
        """
    ),
    "sdk": (
        """
        {what|which} {url|address|base url|host} {do i|must i|should i|shall i}
        {type|put|write|enter|give|configure|use} {in|into|in|for} {my|the}
        {client|code|program|script|sdk|app|settings of my editor}; {i have|i wrote|there is|we have}
        {a|some|existing|old} {python|openai|javascript|node} {code|script|program|app}{ that uses openai| which calls
        openai| with the openai library| for openai|}{,|.| and} {how do i use it here|can it talk to ossrun|how do i
        point it here|will it work with this|what do i change}; {import|from} openai{ import openai|} {with|and}
        {ossrun|a local url|this server}; {openai|the openai} {package|module|library|client|sdk}
        {with|and|against|for} {ossrun|this|the local server|localhost}; {what|how} {must|do} i change {in|for} my
        {openai |python |}{code|script|program|client} {to use|to call|so that it uses|for} {ossrun|the local
        server|this|my machine}; {where|at which address|at what url} {is|does} the {server|api}
        {reachable|listen|found|live}; a {few|couple of|short} lines of {python|code}{ for the api| calling the
        server| with openai|}; call it {from|with|in} {python|node|my notebook|code}
        """
    ),
    "routes": (
        """
        {what|which} {can|could} i {call|request|post to|get} {on|from|at} the {server|api}; {is|are}
        {/v1/responses|responses|chat completions|/v1/chat/completions|the responses api|both apis}
        {there|supported|available|implemented|included}; {curl|post|get}
        {/v1/models|/v1/chat/completions|/v1/responses|the models list}; {which|what}
        {parts|methods|functions|calls|paths} of the {openai api|openai interface|api} {work|are supported|does it
        know|are there|can i use}; the {new|newer|old} {responses|completions|chat completions}
        {api|interface|endpoint}; {how|where} do i {post|send} {chat|my} {messages|requests} {to|over http};
        {does|can} {it|the server} {list|show} {its|the} models {over http|by api|at an endpoint};
        {urls|paths|routes|endpoints} {under|below|behind} /v1
        """
    ),
    "apieffort": (
        """
        {in|from|with|inside} {a|the|my} {request|api call|json|http request|post|python call|api request}{,| how| can
        i|} {set|change|choose|send|control} the {effort|reasoning|reasoning effort|thinking}; {how|where} {do|can}
        {i|api clients|programs|clients} {say|set|give|tell|send|choose} {how much it thinks|the effort|high
        effort|low effort|the level of reasoning}{ in the request| in the json| over the api| in the call|};
        {the|which|what} {name of the |}{json |request |api |}{field|key|parameter|property} {for|of|that sets|with}
        the {effort|reasoning|thinking|reasoning effort}; {api|rest|http|sdk|openai client} {and|with|:} {reasoning
        effort|low effort|high effort|effort}; {effort|reasoning} {per|for each|for every|in each} {request|call|api
        call}
        """
    ),
    "tools": (
        """
        {my|our} {program|app|code|api} {has|offers|defines|brings} {functions|tools|a function}{,| and}
        {can|could|should|will} {the model|it} {call|use|trigger} {them|it}; {<canit>}
        {trigger|fire|call|use|run|execute} {my|own|a|external|python|weather} {functions|tools|function|code|apis};
        {function|tool} {use|calls|calling|schemas|definitions}{ like with openai| in requests| with json|
        supported|}; {how|where} do i {describe|declare|register|list|define} {my|a|the}
        {functions|function|tools|tool}; {agents|an agent|agentic use}{ with my own tools| that calls functions|};
        {does|will|can} {the model|it} {return|give|send|produce} {function calls|tool calls|json arguments};
        {let|have} the {model|assistant|ai} {look up the weather|query my database|use my calculator|do things}
        {with|by|through} {functions|tools|my functions}
        """
    ),
}
