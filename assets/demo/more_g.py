"""Situations instead of questions: users who do not know the word for what they want (seventh phase, see more.py)."""

MORE = {
    "start": (
        """
        {i have no clue|no idea} {what to do|where i am|how this works}{ now| at all|}; the terminal is open{ and
        now|, what do i type}; {my friend|a colleague} {told me to install this|sent me this program}{, what now|,
        what do i do with it|}; {zero|no} experience{, guide me|, take me by the hand|}; {what|how} {shall|would} i
        {try|explore} {first|as a start}; {give|show} me {an example|a first example|something} {to try|to run}
        """
    ),
    "chat": (
        """
        {i just want to|let me} {type|write} {messages|things|to it} and {read|get} {answers|replies}{ in my
        terminal|}; {a|some} {back and forth|small talk|conversation} with {the machine|an ai}{ in the terminal|};
        {drop|take|bring} me into {a conversation|a session|the prompt}; {fire up|bring up|spin up} {the|a}
        {chat|conversation|repl}; discuss something {at length|over several messages} with {it|the model}
        """
    ),
    "once": (
        """
        {in|from} {a|my} {git hook|crontab|script|loop|shell function|alias}{,|} {i need|i want|get} {an answer|the
        reply} {printed|as text|on stdout}; {i'd like|i want} to {do|use} something like cat {file|notes|log}
        {pipe|and then} {ossrun|the model}; fire {off|} {a|one} {question|prompt} and {go on|be done}; {without|no}
        {ui|user interface|window|prompt}{, just the text|, only the answer}; {loop|iterate} over {files|lines} and
        ask {about each|one thing each}; {how|can i} {use|call} it {like|as} {grep|a unix filter|a normal unix tool|a
        command line filter}
        """
    ),
    "showreason": (
        """
        {my script|the one-liner|the command} {hides|drops|swallows} {the|its} {thoughts|reasoning}{, i need them|};
        {why it came to|how it got to} {its|the} answer{ when i ask once|, in a one shot call}; {debug|inspect}
        {the|its} {chain of thought|reasoning} of a {one shot|single} {call|answer}
        """
    ),
    "stop": (
        """
        {it|the model} {rambles|goes on|keeps going|writes a novel|repeats itself|is stuck in a loop|never ends}{,
        make it end|, end this|, what do i press|}; {i|we} {typed|sent|asked} the wrong {thing|question}{, cancel it|,
        take it back|, stop it|}; that's enough{ of this answer| text|}; {cut|break} it {off|short};
        {escape|abort|emergency} key
        """
    ),
    "leave": (
        """
        {how|let me} {get|go} {home|out of here|away|back to bash|back to work}; {close|shut} {this|it} {now|down};
        {i'm|i am} {trapped|stuck|caught} in {here|this window|the chat}; like :q in vim{, but here|}; {finish|end}
        {for today|this session}
        """
    ),
    "fold": (
        """
        {the|that} {gray|dim|faint|grey} {text|stuff|part} {above|before} the answer{, can it go away|, what hides
        it|, show it again|}; {curious|i want to know} {what|how} {it|the model} {thought|was thinking|reasoned}{ in
        the chat|}; {peek|look} {into|at} {its|the model's} {head|mind|thoughts}; {too much|all this} {thinking
        text|reasoning} on {the|my} screen
        """
    ),
    "chathelp": (
        """
        {something like|is there} {a cheat sheet|a man page|a list of keys|a legend} {for|in|of} the chat; what
        {can|else} i {enter|press|type} {here|in the chat} {besides|apart from|other than} {questions|text};
        {which|what} {tricks|features|extras} does the chat {have|offer}
        """
    ),
    "new": (
        """
        {forget|ignore} {what|everything} {we talked about|i told you|came before}; {it|the model} {confuses|mixes}
        {this|my question} with {the earlier one|what i said before}; {different|unrelated} {question|matter} now{,
        forget the old stuff|}; {page|sheet} {turned|blank}{ please|}; {back|go} to {zero|square one}; {purge|flush}
        the {history|conversation|messages}
        """
    ),
    "model": (
        """
        {i'd rather|i prefer to|let me} {have|use|run} the {other|bigger|smaller} {one|model}; {it|ossrun}
        {took|chose|picked|loaded} {20b|the small one|the demo} {but|although} i {have|wanted|downloaded} {120b|the
        big one}; {swap|exchange|switch} {20b|the small one} {for|to} {120b|the big one}; {how|where} does it know
        which {model|weights} to {use|load}; {my own|a fine tuned|our} checkpoint{ in a folder|}{, can it load that|,
        use it|}
        """
    ),
    "serve": (
        """
        {my|our} {web app|frontend|editor plugin|agent|bot|ide|website} {needs|wants|is looking for|requires} {a|an}
        {url|backend|endpoint|model behind it|openai key and url|openai style backend}; {other|all my}
        {programs|tools|apps} {on this machine |}should {be able to |}{ask|use|query|share} {it|the model};
        {stand|fire|spin|bring} up {an|the|a} {endpoint|backend|service|api}; {i used|we pay} {openai|the openai
        api|chatgpt} {so far|until now|every month}{, can this take over|, i want it local|, replace it}; {how|can}
        {programs|software|code} {talk|speak} to {it|the model}; {turn|make} {this|my} {machine|computer|pc} into {a
        server|an ai server|a model server}; {json|requests} over http; {keep|run} it {in the
        background|permanently|as a daemon}{ for my apps|}
        """
    ),
    "serve_p": (
        """
        {the|our} {api|server|endpoint} {must|has to|needs to|should} {be|live|sit|run|listen} {at|on|under}
        {localhost:$P|port $P|:$P|$P}; {my client|the app|the proxy} {looks at|connects to|talks to|is set to}
        {localhost:$P|port $P}; {http://localhost:$P|http://127.0.0.1:$P}{ please| should work|}; only {port |}$P is
        {free|open|allowed}
        """
    ),
    "port": (
        """
        {address already in use|bind error|port conflict}{, what now| when i start the server|}; {jupyter|another
        service|my other app|django} {sits|already runs|listens} {there|on 8000|on that port}; {8000|that number}
        {doesn't suit me|is not free|is blocked|clashes}; {somewhere|something} else than {port |}8000
        """
    ),
    "host": (
        """
        {i sit|i am|we are} {on the sofa|in another room|in the office|on my tablet} and {want|need} {to use it|to
        reach the machine|the api}; {from|on} {my|the} {phone|tablet|other laptop|raspberry pi} {i get|there is}
        {connection refused|no answer|nothing}; {the whole|our whole} {family|team|office|department|class}
        {should|wants to|may} {use it|connect|share it}; {it|the server} {works|answers} {only |just }on
        {localhost|this machine}{, why|, how to open it|}; {docker|a container|a vm} {cannot|can't} reach {it|the
        server|the api}
        """
    ),
    "apikey": (
        """
        {not everybody|no stranger|nobody else|only i} {should|may} {be able to |}{use|call|query} {my|the}
        {server|api}; {someone|a neighbor|strangers} {might|could} {abuse|misuse|use} my {server|api|gpu}; {put|add}
        {a lock|a password|protection} {on|to} {it|the api|the server}; {safe|secure|locked} {server|api}{ please|};
        {authorization|bearer} header
        """
    ),
    "sdk": (
        """
        {from openai import openai|import openai|client.chat.completions.create}{, how|, what url|, does it work|}; {i
        write|i program|my code is} in {python|javascript|typescript|node|go|java}{ and want to use it| and need the
        model|, how do i call it|}; {my|our} {scripts|code|notebook|program} {uses|use|is written for} {openai|the
        openai library|gpt-4}{, what must i change|, can it use this|}; {point|aim|redirect} {my
        client|openai|langchain|the library} {at|to} {my machine|localhost|ossrun|this server}; {which|what}
        {client|library|package} do i {use|need|install}{ for the api|}
        """
    ),
    "routes": (
        """
        {404|not found} {from|on} the {server|api}{, which paths are right|}; {curl|post|get} to {what|which}
        {path|url}; {what|which} part of {the openai api|openai's api} {is there|works|is missing|is covered};
        {old|legacy|new} {completions|responses} {api|route|endpoint}
        """
    ),
    "apieffort": (
        """
        {how|where} do i {tell|say to} the {server|api} to think {more|less|harder}; {my|the}
        {app|request|client|call} {should|must} {think|reason} {more|less|longer|deeply}{ than the others|};
        {json|body} {field|key} for thinking; {one|this} request {with|needs} {more|high|low} {effort|thinking}
        """
    ),
    "tools": (
        """
        {let|have} {it|the model} {look things up|query my database|read my calendar|call my code|control my
        lights|fetch the weather|use a calculator}; {can|could} {it|the model} {act|do things|trigger actions|take
        actions|use plugins|use apis}; {plugins|actions|extensions|agents|mcp}{ possible| supported|}; i {wrote|have}
        {a|some} {function|functions|tool|tools}{, can it use them|, how do i pass them|, how does the model get
        them|}
        """
    ),
    "pull": (
        """
        {i have|there is} nothing {on my disk|here|to run} {yet|so far}; {the demo|this demo|the tiny model} is {too
        dumb|not enough|useless|too weak}{, i want the real thing|, give me a real one|, get me more|}; {before|ahead
        of} {my flight|the trip|the weekend} i {need|want} {the files|everything} {on disk|here|local}; {where|how}
        {do|does} the {weights|model} come from; {fetch|bring} {it|gpt-oss|the weights} {over|home|down}; hugging face
        {download|model|weights}{, how|}
        """
    ),
    "pull20": (
        """
        {i want|get me|bring me} the {one|model} {that fits 16 gb|for laptops|with 20 billion parameters|for small
        machines}; {my|the} {laptop|notebook|gaming pc|16 gb card} {needs|should get} {its model|the small
        weights|20b}; {20b|gpt-oss-20b} {please|on disk|to my disk|isn't here yet|is missing|not found}
        """
    ),
    "pull120": (
        """
        {i want|get me|bring me} the {one|model} {with 120 billion parameters|for big gpus|that is smartest|for the
        server}; {our|my} {h100|a100|workstation|big box} {needs|should get} {its model|the large weights|120b};
        {120b|gpt-oss-120b} {please|on disk|to my disk|isn't here yet|is missing|not found}
        """
    ),
    "resume": (
        """
        {at|after} {30|50|80|90|99} {percent|%} {it|the download} {stopped|failed|died|hung}; {my|the} {cat|kid|son}
        {pulled the plug|closed the laptop}{ during the download| while it was downloading|}; {half|part|most} of {the
        files|it|the model} {is|are} {there|here|already there|on disk}{, the rest is missing|, how do i get the
        rest|}; {bad|slow|flaky|unstable} {internet|line|connection|wifi}{, it always breaks|, the download keeps
        failing|}; {can|may} i {turn off|restart|close} {the computer|my laptop} {while|during} {it downloads|the
        download}
        """
    ),
    "size": (
        """
        {i have|only|just} {10|20|30|50|100} {gb|gigabytes} {free|left|of disk}{, is that enough|, does it fit|, will
        it do|}; {my|a} {data plan|mobile plan|quota} is {limited|small}{, how much is it|, how big is the download|};
        will it {fill|eat|use up} my {disk|drive|ssd|data plan}; how {many|much} {hours|time|gb} {for|to download|does
        it take to download} {20b|120b|the model|the weights}
        """
    ),
    "where": (
        """
        {i|we} {can't|cannot} find {the files|the weights|what i downloaded|the model}{ on disk|}; {something|ossrun}
        {ate|uses|takes} {14|65|80} gb of my disk{, where|, where is it|}; {which|what} {directory|folder} {do i|must
        i|should i} {back up|exclude from backup|copy|mount|put in docker}; {share|copy} the {weights|files} with
        {another tool|a colleague|vllm|another machine}
        """
    ),
    "hfhome": (
        """
        {my|the} {ssd|home|laptop disk|root partition} {is|has} {tiny|full|no room|no space}{ for such files|}{, but|}
        {the other disk is big|i have a second drive|/data is large|}; {weights|models|downloads} {on|to} {my nas|the
        nas|an nfs share|the d drive|a usb ssd|/mnt/models|/data}; {not|anything but} {in|under} my home
        {folder|directory}; {central|shared} {folder|place|cache} for all {users|colleagues}
        """
    ),
    "list": (
        """
        {i forgot|no idea|remind me} {what|which} {i downloaded|models i have|i already have|is here}; {before|so that
        i do not} {downloading|download} {again|twice}{, is it here already|, what is there|}; {inventory|stock}{ of
        models|}; {check|see} {if|whether} {20b|120b|the big one|the model} is {here|complete|on disk|already there}
        """
    ),
    "rm": (
        """
        {my ssd|the disk|my drive} is {screaming|bursting|at 99 percent}; {120b|20b|the big one} {was a mistake|can
        go|is not needed|must go|has to go}; {take|throw} {it|20b|120b|the model} {off|out|away}; {undo|revert} the
        download; {make|get} room{ on my disk| for photos|}; {i'm done|finished} with {20b|120b|the big model|that
        model}{, away with it|}
        """
    ),
    "memory": (
        """
        {my|a|this} {laptop|machine|pc|mac|mini|card} {has|with|comes with} {8|16|24|32|48|64|96|128} {gb|gigs}{ of
        ram| ram|}{, is that ok|, will it do|, which model fits|, is it enough|, what can it run|}; {shopping for|i'm
        buying|i want to buy} {ram|a gpu|a computer}{, how much do i need|, how many gb|}; {will|does} {120b|20b|it}
        {swap|blow up my ram|eat all my ram|fit}; how {hungry|greedy} is {it|20b|120b}
        """
    ),
    "models": (
        """
        {i like|i want|my favorite is|i need} {llama|mistral|qwen|gemma|deepseek|phi|claude|gemini}{, does it run
        here|, can i use it|, possible|}; {what else|anything else} {can it|does it} {run|load} {besides|apart from}
        gpt-oss; {gguf|exl2|awq|ggml|onnx} {file|files|model}{, works|, can it load that|};
        {choice|selection|menu|catalog} of models; {vision|image|embedding|speech|multimodal} models{, too|}
        """
    ),
    "compare": (
        """
        {can't|cannot|i can't} {decide|choose}{ between the two| which model|}; is {the big one|120b} {worth|really
        worth} {the wait|the disk|the money|the memory}; {how much|what} do i {lose|gain|miss} with {20b|the small
        one|120b}; {which|what} one for {coding|a laptop|a server|writing|math|my work}; {quality|speed} of {20b|120b}
        {against|versus|compared with} the other
        """
    ),
    "effort": (
        """
        {sometimes|now and then} it {should|must} think {more|less}; {control|regulate|steer} {its|the}
        {thinking|brooding|brain}; a {dial|slider|knob} for {thinking|brain power|reasoning}; {how|what} {many|kinds
        of} {thinking|reasoning} {levels|modes|steps}; {tell|ask} it {how long|how much} to think
        """
    ),
    "low": (
        """
        {a|such a} {simple|trivial|easy} question and it {thinks|ponders|broods} for {a minute|ages|half an hour}; {i
        don't|nobody} {care|cares} about {deep thoughts|its thoughts}{, be quick|, just answer|}; {cut|stop} the
        {brooding|pondering|overthinking}; it overthinks{ everything| simple things|}; {just|please} {blurt|spit} it
        out; {minimal|least} {thinking|latency|delay}{ please|}
        """
    ),
    "high": (
        """
        {this|it} {is|needs} {a hard proof|serious thinking|real thinking|rocket science|an olympiad problem}; {it|the
        model} {answers|replies} too {quickly|hastily|superficially|rashly}; {take|let it take} {its|your} time;
        {no|careless|stupid} mistakes {please|allowed}{, think well|, think it through|}; {squeeze|get} the
        {most|best} out of {it|the model}; i {don't mind|can} {waiting|wait}{ for a good answer|, think hard|}
        """
    ),
    "effortchat": (
        """
        {right|just} {here|now} in the chat i {want|need} {it to think harder|it to think less|more effort|less
        effort}; {from|for} the next {message|question} on{, think harder|, less thinking|, high effort|}; {how|can i}
        {flip|toggle|cycle} {it|the effort|the thinking} {with a key|while i chat|without restarting}
        """
    ),
    "device": (
        """
        {which|what} {part|chip} of my computer {does the work|computes|is used}; {decide|pick} {where|on which chip}
        it {computes|runs}; {gpu|cpu} {first|preferred|instead}{, how|}; {it|ossrun} {took|chose|uses} the {wrong
        device|cpu although i have a gpu|wrong chip}; {move|put} {it|the model|the work} {to|onto|on} the
        {gpu|graphics card}
        """
    ),
    "cpu": (
        """
        {i'm|my friend is|my son is} {gaming|rendering|training}{, don't disturb the gpu|, keep off the gpu|, leave
        the card alone|}; {this|my} {server|laptop|machine} {has|comes with} {no|not any} {gpu|graphics
        card|accelerator}{, force cpu|}; {hands|keep} off {the|my} {gpu|graphics card|card}; {slow|slower} but
        {without|not on} the {gpu|card}; {pure|plain} cpu{ please| mode|}; {gpu|cuda|driver} {crashes|is broken|makes
        trouble}{, avoid it|, run without|}
        """
    ),
    "gpu": (
        """
        {card|gpu} {zero|one|two|three} {is|drives} {for my monitor|for games|busy|taken}{, use the other|, take
        another|}; {i own|we have|there sit} {two|three|four|eight} {cards|gpus|3090s|4090s|a100s}; {dual|quad}
        {gpu|card} {setup|machine|rig}; {cuda_visible_devices|cuda visible devices}; {pin|nail|assign} {it|the model}
        to {one card|a card|card 1|the second card}; {spread|split} {it|the model|120b} {over|across} {my|both|all}
        {cards|gpus}
        """
    ),
    "threads": (
        """
        {my|the} {fan|fans} {howl|screams|goes crazy} {because|since} all cores {work|are busy}; {my|the}
        {desktop|mouse|music|video} {stutters|freezes|hangs|lags} {while|when} it {runs|computes|answers}; {do
        not|don't} {take|use} {all|every} {cores|core|cpu}; {half|a quarter|only some} of {my|the}
        {cores|cpu|processor}; {i have|with} {8|16|32|64} cores{, use 4|, use fewer|, use half|}
        """
    ),
    "context": (
        """
        {i want|i need} to {paste|throw in|drop|load} {a whole book|200 pages|a huge log|my thesis|an entire repo}; it
        {forgets|lost|no longer knows} {the beginning|what i said at first|the start of our talk}; {prompt|input|text}
        {is |}{too long|rejected|refused|cut}{ error|}; {32k|64k|128k|100000 tokens|long} {context|window|tokens|}{,
        possible|}; {short|small} {context|window} {is enough|to save memory|suffices}
        """
    ),
    "temperature": (
        """
        {its|the} {poems|stories|answers|ideas} are {boring|dull|all alike|too wild|crazy|too tame}; {spice|calm} it
        {up|down}; {i want|give me} {wilder|crazier|tamer|calmer|safer|bolder} {answers|text|stories|output};
        {for|when} {code|facts|math}{,|} {no randomness|no surprises|less creativity}{ please|}; {turn|dial}
        {creativity|randomness|the heat} {up|down|off}
        """
    ),
    "topp": (
        """
        {only|just} {the best|the likeliest|sensible|probable} {candidates|words|tokens}{ should be drawn|};
        {strange|odd|rare|weird} {words|tokens} {slip in|appear|pop up}{, cut them off|}; {cut|trim} the tail{ of the
        distribution|}; {the|a} {0.9|0.95|90 percent} {nucleus|mass}; probability mass
        """
    ),
    "seed": (
        """
        {yesterday|before|the first time} it {said|wrote|answered} something {else|different}{, i want the same|};
        {for|in} {a test|my paper|an experiment|unit tests}{,|} {i need|the output must be} {the same
        output|reproducible|identical}{ each time|}; {freeze|fix} the {randomness|dice|luck}; {twice|two times} the
        same {question|prompt}, {two|different} answers; {deterministic|stable|constant} {results|tests}
        """
    ),
    "maxtokens": (
        """
        {it|the model} {writes|talks|answers} {novels|too much|pages|endlessly}{, limit it|, cap it|, keep it short|};
        {a|one} {tweet|paragraph|sentence|line} {is enough|at most|long}{, no more|}; {hard|upper} {limit|bound|cap}
        {for|on} {the answer|the text|output}; {never|not} more than {100|50|200|500} {tokens|words}; {cost|time}
        {control|limit} by {length|tokens}
        """
    ),
    "system": (
        """
        {it|the model} {should|must|shall} {be|play|pretend to be} {a pirate|my teacher|a cook|a
        lawyer|shakespeare|strict|funny|polite}; {always|only} {answer|speak|reply} in
        {german|french|spanish|rhymes|short sentences|english}{ from now on|}; {give|assign} it {a role|a job|rules|a
        personality|a name}; {background|context} {information|facts} {it should always know|before the first
        question}; {start|begin} {with|from} {my|own} {instructions|rules}
        """
    ),
    "json": (
        """
        {my|the} {script|program|parser|dashboard} {needs|expects|wants|eats} {json|structured data|a
        structure|fields}; {with|for|through} jq; {not|no} {prose|plain text|free text}{, but data|, json|}; {token
        counts|usage|statistics} {together|along} with the answer {in|as} {a|one} {json|object|record};
        {output|answer} {a computer|a machine|software} can read
        """
    ),
    "configfile": (
        """
        {every|each} {time|day|morning} i {type|write|enter} the {same|long} {flags|command|options};
        {remember|keep|save} {that|my choice|my settings|effort high|my model}{ forever| for good| please|}; {i
        always|i only ever} want {high effort|120b|the cpu|temperature 0}{, where do i write that|, make it the
        default|}; {dotfile|rc file|ini file|yaml}; {as|make it} {the|my} default{ from now on|}
        """
    ),
    "config": (
        """
        {one|a} {file|set of settings} {for work and one for home|per project|for each project}; {at work|for this
        project} i {need|use|want} {other|different} {settings|defaults}{ from a file|}; {pass|hand over|give} {a|my}
        {yaml|settings} file {on the command line|by hand|as a flag}; {not|instead of} the {file|one} in {~/.config|my
        home}
        """
    ),
    "doctor": (
        """
        {i bought|i installed|i have} {a new card|a gpu|an rtx 4090|new drivers}{, does it see it|, is it used|, is it
        found|}; {it|ossrun} {runs|computes|works} on the cpu {although|but|even though} i have a {gpu|card};
        {what|which} {would|does} ossrun {use|choose} {here|on this machine} and why; {nothing|it doesn't} works{,
        what's wrong|, find the problem|, diagnose|}; {is|can} {this|my} {old|new|little} {laptop|box|machine} {good
        enough|strong enough|up to it|run it}; {for|before} a bug report{,|} {the hardware|my hardware info|system
        info}; {sanity|health} check{ of my setup| of my machine|}; {nvidia-smi|rocm-smi} {shows|sees} {it|my card},
        {ossrun|you} {doesn't|don't}
        """
    ),
    "selftest": (
        """
        {i don't|can i} trust {the|its} {numbers|results|gpu|math}{ on this card|}; {overclocked|old|exotic|flaky}
        {gpu|card|machine}{, does it compute right|, are the results right|}; {garbage|gibberish|nonsense} {comes
        out|output}{, is the math wrong|, are the kernels ok|}; {prove|confirm} that {it computes right|the kernels
        are right|the math is correct}
        """
    ),
    "bench": (
        """
        {is|are} {my|this} {machine|gpu|laptop} {fast|quick}{ enough|}; {how|what} {quick|speed} {can|will} {i|it}
        {get|reach}{ here| on this machine|}; {numbers|figures} for {speed|a comparison|my blog|the forum}; {my|a}
        {friend|colleague} gets {50|100|200} tokens{ per second|}{, what do i get|, and me|};
        {stopwatch|race|speedometer}; {tok/s|tps|tokens/s}{ here| on my box| please|}
        """
    ),
    "slow": (
        """
        {i can|one could} {make coffee|fall asleep|take a nap|grow old} {while|before} it answers; {word|letter} by
        {word|letter}{, so slow| it crawls|}; it {crawls|creeps|drags|takes its time}; {every|each} answer takes
        {minutes|an hour|forever|five minutes}; {need|i need|want} {more speed|a turbo|it faster}
        """
    ),
    "oom": (
        """
        {it|ossrun|the process} {just |}{says killed|is killed|dies|crashes|quits} {while|when} loading{ the model|};
        {my|the} {16|8|12|24} gb {card|gpu|laptop} {chokes|gives up|can't hold it|is too small}{ with 120b| with
        20b|}; {cannot|can't|failed to} allocate{ memory|}; {swap|swapping} {like crazy|all the time|everything};
        {squeeze|fit} {it|120b|20b} into {less|my|little} {memory|ram|vram}
        """
    ),
    "eval": (
        """
        {is|was} {the|my} {quantized|converted|downloaded|fine tuned} {model|checkpoint} {as good as|worse than} {the
        original|before}; {report card|exam|marks|grades} for {the model|20b|a checkpoint}; {gpqa|aime|mmlu|math}
        {score|scores|results}; {let|make} it {take|sit} {a test|an exam}; {how|is it} {often right|reliable|clever}{
        on real questions|}; right answers in percent
        """
    ),
    "harmonycmd": (
        """
        {what|how} {does|do} {my prompt|the prompt|a message} look {as|in} {tokens|ids|numbers}; {ids|token
        ids|numbers} of {a|my} {text|sentence|prompt}; {from|back from} {ids|tokens} to {text|words}; {i have|here
        are} {raw|some} {ids|tokens}{, what do they say|, make text of them|}; {how long|how big} is {my|this}
        {prompt|text} in tokens; {which|what} tokens {make up|are in} {hello world|this text|a word}
        """
    ),
    "version": (
        """
        {am i|is this} {outdated|on the newest|behind|current}; {they|the forum|support} {asked|wants to know} which
        {version|release|build} i {have|use}; {since when|how long} do i have this {build|release}; -v; --version
        """
    ),
    "completion": (
        """
        {i'm|i am} too lazy to type {the flags|everything}{, tab|}; {the tab key|tab} {should|could} {finish|fill
        in|suggest} {the flags|commands|the rest}; {bashrc|zshrc|config.fish} {line|snippet|entry} for
        {ossrun|completion}; {oh my zsh|powerlevel|fish}{, completion|, tab completion|}
        """
    ),
    "harmony": (
        """
        {what are|why are there} {those|these} {strange |special |}{<w> |}tokens like {start and
        message|channel|analysis}; {why|how} {does|do} {it|the model|answers} {have|come in|use} {three
        channels|channels|parts}; {between|difference of} {analysis|final} and {commentary|final|analysis}; {i
        write|writing} {a client|my own engine|a parser}{, which format|, what does the output look like|};
        {chatml|jinja|template}{ or what| for gpt-oss|}
        """
    ),
    "mxfp4": (
        """
        {how|why} {can|do} {20|120} billion {parameters|weights} {fit|only take} {in|} {13|16|65|80} gb; {do|did}
        {they|openai} {compress|shrink|quantize} {the weights|it|the model}; {is|was} {something|quality} lost by {4
        bits|quantization|compression}; {four|4} {bits|bit} {per|a|for each} {weight|number|parameter};
        {int4|int8|fp8|bf16|fp4} or {what|which}
        """
    ),
    "private": (
        """
        {my|the} {boss|lawyer|doctor|company} {forbids|does not allow} {the cloud|sending data away|uploading};
        {patient|customer|client|tax} {files|data|records} {in|with} it{, ok|, allowed|, safe|}; {big brother|who}
        {watches|listens}{ in|}; {plane|train|submarine|cabin|bunker} {mode|without net|no internet}{, does it work|};
        {unplug|cut} the {cable|internet|router}{ and it still works|, does it still work|}; {does|will} {my
        text|anything} {end up|land} {at openai|in the cloud|in training data|on a server}
        """
    ),
    "license": (
        """
        {i want|we plan} to {sell|ship|build a product with|earn money with} {it|gpt-oss|this}; {what|anything}
        {costs|do i pay|does it cost}{ per month| per token|}; {legal|our lawyers|my company} {department|asks|wants
        to know} {about the terms|what the terms are|if we may use it}; {fork|modify|fine tune|redistribute} {the
        model|the weights|it}{, allowed|, ok|}; {apache|mit|gpl}{ or what|}
        """
    ),
    "hardware": (
        """
        {i have|there is|i only have} {an intel chip|a radeon|an amd card|a gtx 1080|an rtx 3060|a ryzen|an old
        xeon|no nvidia|a mac mini}{, does it work|, is that ok|, good enough|}; {amd|intel|apple|nvidia}{ too| as
        well| possible|}; {buy|get} {which|what} {gpu|card}{ for this|}; {must|does} it be {nvidia|cuda}; {without|no}
        {cuda|nvidia}{, any chance|, possible|}; {what|which} {iron|metal|box} {do i need|does it need}
        """
    ),
    "vllm": (
        """
        {my|our} {five|ten|two|twenty} {servers|nodes|boxes|machines} {should|shall|could} {work together|share the
        work|run it together}; {one|a single} machine is {not enough|too little|too small}{ for our users|};
        {whole|entire} {company|university|data center}{ as users|, many machines|}; {load balancing|horizontal
        scaling|autoscaling|pipeline parallel|tensor parallel over nodes}; {bigger|larger} {deployments|installations}
        """
    ),
    "what": (
        """
        {never|i never} heard of {ossrun|this}{, what is it|}; {my|a} {boss|friend|teacher} {mentioned|talks
        about|uses} ossrun{, what is it|, what does it do|}; {explain|describe} {it|ossrun} {to my <family>|like i'm
        five|in plain words|in two sentences}; {is|was} {ossrun|this} {something like|similar to|the same as}
        {ollama|llama.cpp|lm studio|chatgpt|vllm}; {elevator pitch|short description|about page}
        """
    ),
    "who": (
        """
        {so|and} {you|what} are {what|you} {exactly|then|really}; {are|is} {you|this} {just|only|merely} {a toy|a
        demo|an example|a test|small}; {do|don't} you know {everything|anything}{ at all|}; {can|could} {i|one} trust
        {you|your answers|what you say}; {which|what} {brain|ai|engine} {is|sits} {behind|in} {this|you}; {you're|you
        are} {not very smart|quite limited|dumb|stupid|wrong|funny|useless}
        """
    ),
    "greet": (
        """
        {hey|hi|hello}{,|} {anyone there|you there|are you on|can we talk|got a minute|do you have time|i have a
        question|can you help me}; {good|lovely|nice} {to meet you|day|morning|evening}{ my friend| to you|}; {it's|it
        is} {me|<person>}{ again|}; {just|only} {saying|wanted to say} {hi|hello}; {wake up|you up|ready when you are}
        """
    ),
    "thanks": (
        """
        {you|that} {saved my day|made my day|saved me hours|are a life saver}; {exactly|just} what i
        {needed|wanted|was looking for}; {works|it works|works now|solved|fixed}{ great| like a charm| perfectly|};
        {five stars|well done|bravo|respect|kudos}; {that's|that is} {very |so |}{kind|nice|good}{ of you|}
        """
    ),
    "bye": (
        """
        {dinner|lunch|work|my bed|the bus} {is ready|is waiting|calls}{, bye|, see you|}; {i'll|i will} {be back|come
        back|return|stop here}{ later| tomorrow|}; {logging|signing} off; {closing|leaving} {now|for today};
        {peace|over and out|until then|so long then}
        """
    ),
}
