"""More ways to ask about the other verbs, background and small talk, for the second training phase (see more.py)."""

MORE = {
    "doctor": (
        """
        {it|ossrun} {ignores|overlooks|does not see|misses|can't see|doesn't notice} my {gpu|graphics card|card|nvidia
        card|amd card|second gpu}; {did|has|does} it {recognize|notice|see|detect|find|recognised} {my|the}
        {hardware|gpu|graphics card|card|machine}{ at all| properties| right|}; {something|nothing} {is
        wrong|works|works here|is not right|is broken|seems off}{ with my setup| with my gpu| with my installation| on
        my machine|}; {what|which} {does it|will it|did it} {know|see|find|think} {about|of|on} my
        {machine|hardware|computer|system}; {i have|there is|i own} a {gpu|graphics card|nvidia card|video card}{ but|
        and|,} {it|ossrun} {says there is none|uses the cpu|does not use it|is slow|runs on the cpu|does not find it};
        {how|can i} {verify|check|see|make sure|be sure} {that |if |whether |}{everything is fine|all is well|my setup
        works|it is installed right|the gpu is used|it found my card|my hardware is recognised};
        {health|system|hardware|setup|driver} {check|report|diagnosis|test|problem}{ please|}; {why|on what} {does
        it|is it|did it} {choose|running|use|chose|pick} {the cpu|this device|that device|the wrong gpu|my processor};
        {diagnose|examine|inspect|check|look at} {it|my machine|my computer|the installation|what is wrong};
        {find|tell me|see} {out |}{what|which} {device|hardware|gpu} {it uses|it will use|is in use|gets used|it is
        going to use}{ and why|}
        """
    ),
    "selftest": (
        """
        {do|does|are} {the|its|my} {kernels|computations|calculations|numbers|results of the kernels}
        {right|correct|exact|work properly|give right results|compute the right numbers}; {verify|prove|make
        sure|check|test} {that |if |whether |}the {kernels|math|numbers|computation|calculations} {are|is|works|work}
        {right|correct|properly|exact}{ on my gpu| on my machine|}; {a|run the|is there a} {check|test} {of|for} {the
        kernels|correct computation|numerical errors|the gpu code|correctness}; {wrong|garbage|strange}
        {numbers|results|output} from the {kernels|gpu|hardware}{, how do i test that|}; {kernel|numerical|gpu}
        {correctness|accuracy|self test|test|check|verification}
        """
    ),
    "bench": (
        """
        {how|what} {speed|quick|fast} {can|could|will|do} i {expect|get|reach|hope for}{ here| on this machine| with
        my card|}; {numbers|figures|statistics|data} {on|about|for} the {speed|performance|throughput}{ please| of my
        machine|}; {i want|i'd like|let me|how} to {time|measure|clock|benchmark|test} {it|my machine|the speed|the
        model|how fast it writes}; {tokens|words} {per|a|each} second{ here| on my machine| please| on this box|};
        {performance|speed|throughput|bench|benchmark} {test|numbers|measurement|figures|run}{ please|}; {is|how}
        {my|this} {machine|gpu|card|computer} {fast|quick}{ enough|}; {what|which} {rate|speed|throughput|number of
        tokens per second} {does|will|can} {it|my machine|this machine|my card} {reach|make|manage|do|achieve};
        {compare|test|rate} {my machine's|the|its} {speed|performance}{ with others|}; {how many|the number of} tokens
        {per second|a second|each second} {does|can|will} {my|this|the} {machine|gpu|laptop|card|model}
        {reach|make|do|produce|write|achieve}
        """
    ),
    "slow": (
        """
        {this|it|everything|the model} {takes|needs} {so long|too long|ages|an eternity|forever|minutes}{ to write|
        for one answer| per word| to answer|}; {i wait|i'm waiting|i have to wait} {too long|forever|minutes|ages}
        {for|until} {an answer|the answer|a reply|it answers|a word}; {is there|do you know} {a|any|some}
        {trick|way|tips|means} {to make it|to get it|for making it|so that it is} {faster|quicker|speedier};
        {speed|hurry} {it|the model|things} up{ somehow| please|}; {why|how come} {does it take|is it taking|do i
        wait} so long; {one|a} {word|token|sentence} {every|per|in|takes} {few seconds|minute|ten seconds};
        {improve|boost|increase} {its|the|my} {speed|performance|pace|tempo}; {terribly|awfully|really|unbearably|far
        too|so|very} slow{ here| on my machine| today|}{, what can i do|, why|, help|}
        """
    ),
    "oom": (
        """
        {it|ossrun|the program|the model} {crashes|crashed|dies|died|was killed|gets killed|stops|aborts} {because|due
        to|for lack of|with an error about|as} {memory|of memory|too little ram|memory runs out|there is too little
        memory|out of memory|not enough vram}; {memory|ram|vram} {runs out|ran out|is full|is exhausted|overflows|is
        not enough|is used up}{, what can i do| and it crashes|, <how>|}; {out|short|lack|shortage} of
        {memory|ram|vram}{ error| crash| problem|}{, help|, what now|, what to do|}; {the|a} {model|120b|20b} {is too
        big|does not fit|needs more|is too large} {for my|than i have|into my} {memory|ram|vram|gpu|card|machine}{
        memory|}; {how|can i} {make it|let it|get it to} {use|need|take} {less|fewer|not so much} {memory|ram|vram|gpu
        memory}; {my|the} {machine|computer|gpu} {freezes|swaps|hangs|crashes} {because|when} {memory|ram|the memory}
        is {full|used up|exhausted}; {allocation|malloc|cuda memory|memory} {failed|error|failure}
        """
    ),
    "eval": (
        """
        {is|are} {the model|20b|120b|its answers|the answers} {any good|correct|reliable|right|accurate|trustworthy}{,
        can i measure that|, how do i test it|, how can i check|}; {give|let} {it|the model|20b} {a|an|take a|take an}
        {exam|test|quiz|grade|score}; {how|can i|i want to} {grade|score|judge|rate|evaluate|examine|mark} {it|the
        model|its answers|the quality|20b|a model}{ on a set of questions| with a test| with my questions|};
        {score|mark|rate|grade} {it|the model|a model|20b|120b}{ please| on questions| on a test set|}; {what|how
        many} {percent|share|questions|answers} {does it|of the answers|of questions} {get right|are right|are
        correct|answer correctly|does it answer right}; {quality|accuracy|intelligence} {of|check of|measurement
        of|score of} {the model|20b|120b|the answers|a model}; {test|check} {how|whether} {smart|good|correct|it knows
        things|clever} {it|the model} {is|answers|}; {run|do|make} {a|an} {exam|evaluation|eval|quality check|test}
        {of|on|with} {the model|20b|120b|questions}
        """
    ),
    "harmonycmd": (
        """
        {how|can i|i want to} {see|look at|view|print|show|inspect} {the |}{tokens|raw tokens|token ids|raw
        prompt|actual prompt|real prompt}{ of a text| of my prompt| the model sees| that are sent| behind a message|};
        {turn|change|convert|translate|transform|split} {my |a |some |}{text|sentence|prompt|word|string} {into|to}
        {tokens|token ids|numbers|token numbers}; {tokens|token ids|ids|numbers} {back |}{to|into} {text|words};
        {a|the} {tool|command|utility|program} {for|to work with|to convert|that shows|to see|that makes}
        {tokens|tokenizing|token ids|encoding|decoding}; {tokenize|detokenize|encode|decode} {something|a
        sentence|this|my text|a file|tokens|a prompt}; {how many tokens|the number of tokens|token count}
        {is|are|of|in|for} {this|my text|a text|a file|that|my prompt|a sentence}; {render|parse} {a|some|my}
        {conversation|messages|harmony text|dialog|chat}{ to tokens| by hand| from tokens|}
        """
    ),
    "version": (
        """
        {is|do i have|am i on} {this|it|my ossrun|the} {the newest|the latest|an old|a recent|up to date|current}{
        one| version| release|}; {how|where} do i {see|find|check|print|look up} {the|my|which}
        {version|release|build|version i have}; {what|which} {ossrun |}{version|release|build}{ number|} {do i have|is
        that|runs here|did i install|is on my machine|do we use|have i got}; {version|release|build}
        {number|please|info|information}{ please|}; {tell|show|give} me {the|your|its} {version|release|version
        number|build number}; {i need|they ask for|support asks for|the bug report needs} {the|my} {version|version
        number|release}
        """
    ),
    "completion": (
        """
        {complete|completing|completion of|autocomplete} {commands|flags|options|verbs|the command line}{ with tab|
        when i press tab| in my shell|}; {when|if} i press {tab|the tab key}{ nothing happens| it should complete| in
        bash|}; {tab|auto|shell|command line} {completion|complete|completions}{ please| for zsh| for bash| for fish|
        script| support|}; {does|will|can} {bash|zsh|fish|my shell|the terminal} {know|complete|suggest|fill in} the
        {commands|flags|options}; {bash|zsh|fish|powershell}{ completion| tab completion| completions| support|, does
        it complete|}{ please| script|}; {let|make} my shell {complete|suggest|know} {ossrun commands|the flags|the
        commands}; {suggest|fill in} {commands|flags} {with tab|automatically|while i type}
        """
    ),
    "harmony": (
        """
        {the|this|that} {harmony|channel|channels} {thing|stuff|business|format|idea}; {what|which} {is|are}
        {this|these|the} {harmony|channels|analysis|commentary|final}{ thing| channels| about| for|}; {how|in what
        form|in which format} {does|do|must|should} {the model|gpt-oss|these models|messages|prompts|the prompt}
        {want|expect|look|be written|get|need|see}{ prompts| its prompts| the messages| like| the conversation|};
        {why|what for} {is there|are there|do you have|does it have} {an analysis channel|channels|three channels|a
        commentary channel|a final channel}; {i|we} {saw|read|heard|found|see} {the word |something about
        |}{harmony|channels|the harmony format|analysis and final}{ somewhere| in the docs| in the code| in the
        readme|}{, what does it mean|, what is it|, explain|, what's that|}; {prompt|chat|message|conversation}
        {format|template|structure|layout|syntax}{ of gpt-oss| of the model| of these models|}; {what|which}
        {purpose|role|meaning|use} {has|does} the {analysis|commentary|final} channel{ have|}
        """
    ),
    "mxfp4": (
        """
        {i|we} {saw|read|heard|found|see} {the word |something about |}{mxfp4|fp4|four bit
        weights|quantization|mixture of experts}{ somewhere| in the docs| in the paper| in the readme|}{, what does it
        mean|, what is it|, explain|, what's that|}; {how|in what way|to what precision} {are|is|were} {the
        weights|the model|the experts|the numbers|the parameters}
        {quantised|quantized|squeezed|compressed|packed|rounded|stored}; {how|why} {is|can|are} {the|such a big|a
        20b|the 20b} {model|file|weights} {be |}{so|that} small; {bits|precision|data type|number format} {per|of|for}
        {weight|the weights|parameter|each weight|the model}; {is|are} {it|the weights|the model|the experts}
        {full|half|reduced|low} precision; {what|explain} {are|is} {experts|the experts|an expert|moe|mixture of
        experts|the router}{ in the model| in gpt-oss|}; {mxfp4|fp4|4 bit|four bit|quantization}{ please explain|
        explained| what is that| meaning|, what's that}; {which|what}
        {quantisation|quantization|compression|precision} {do|does} {the weights|the model|it|they} {use|have}
        """
    ),
    "private": (
        """
        {is|are} {anything|something|my text|my words|my questions|what i write|my files}
        {sent|uploaded|transmitted|shared|leaked|passed on}{ to anyone| to a server| to openai| to the cloud| to
        others| anywhere|}; {i have|i work with|these are|it's about}
        {secret|confidential|private|medical|personal|sensitive} {data|documents|papers|files|texts|stuff}{,|.} {is
        that safe|can i use it|is it ok|is this safe|may i use it with them}; {who|somebody|anyone|someone|the nsa|my
        boss|google} {else |}{can|could|may|might|will} {read|see|get|know|learn|watch|spy on} {what i type|my
        questions|this|our chat|my documents|what i ask|it}; {no|without|with no}
        {internet|wifi|network|connection|cloud|online access}{,|} {does it still work|can i use it|will it work|is
        that possible|does it run}; {on|in} {a|the} {plane|train|ship|mountain hut|basement|cabin} {without|with no}
        {internet|wifi|network|signal}{, can i use it| does it work|, will it run|}; {does|will|can} {it|ossrun|the
        program} {phone home|spy on me|track me|log my chats|call the cloud|talk to openai|need to be online|stay
        local}; {my|the} {data|words|secrets|privacy|chats} {stay|stays|remain|remains|safe|protected}{ here| local|
        on this machine| with me|}; {is|does} {any|some} of {this|it|my data} {go|sent|goes|leave|leaves}{ to the
        cloud| out| to the internet| anywhere| my computer|}; {privacy|confidentiality|data protection|secrecy}{
        please| policy| question|}
        """
    ),
    "license": (
        """
        {may|can|could|are} {i|we|my company|our firm|a business|my startup} {allowed to
        |}{use|sell|ship|build|include|put} {it|this|the model|the weights|ossrun|gpt-oss}{ in a product|
        commercially| for business| at work| to customers| in our app| for money|}; {what|how much} {is|does|do i
        pay|must i pay|will it cost|do we owe|would it cost}{ it cost| for it| for that| the price| the fee| me|};
        {free|costs|price|fee|money|payment|legal stuff|legal question|terms}{?| or not| please| and conditions|};
        {do|does} {i|we|it|one|my company} {need|have|has} {to pay|to buy a licence|to buy a license|a license|a
        licence|cost anything}; {the|which|what} {licence|license|legal terms|terms}{ do the weights have| does the
        model have| is it under| apply| are there| covers the weights|}; {is|are} {it|the weights|the
        model|gpt-oss|this|ossrun} {free|open|apache|mit|gpl|legal to use|gratis|open source|commercial}{ software| to
        use|}; {under|by} {which|what} {licence|license|terms} {is|are|can i use} {it|the weights|the model|gpt-oss}{
        released| published|}
        """
    ),
    "hardware": (
        """
        {i own|i've got|i have|there is|my pc has|my laptop has|i bought} {a|an} {radeon|geforce|amd card|nvidia
        card|rtx card|old gpu|rtx 3080|rtx 4070|rtx 4080|amd gpu|rx 6800|gtx 1660|quadro|intel arc}{,|.| and} {is that
        okay|is it supported|does it work|is this fine|can i use it|will it run|good enough|okay for this};
        {no|without|without any|i have no|there is no} {gpu|graphics card|video card}{ at all| here| in my pc| in this
        machine|}{,|.|} {is that a problem|does it still work|can it run|what then|is that ok|possible|will it work};
        {amd|radeon|nvidia|geforce|rtx|rocm|cuda}{ cards| card| gpu| gpus|}{ okay| fine| too| supported| possible| or
        not|}{?|}; {which|what} {<card>s|cards|gpus|graphics cards|hardware|brands|makers} {can be used|will do|are
        good|are fine|are okay|may i use|are compatible|are supported}; {does|will|can} it {run|work|start} {on|with}
        {my|an|a} {amd|nvidia|radeon|geforce|rtx 4070|rtx 4080|rtx 3060|amd radeon|old nvidia|titan}
        {card|gpu|graphics card|}; {only|just} {a|the} {cpu|processor}{ here| in this machine|, does that work| is all
        i have|}; {must|should|do} i {buy|have|own|get} {a|an|some} {gpu|graphics card|nvidia card|expensive
        card|special card}{ for this| for that| to use it|}
        """
    ),
    "vllm": (
        """
        {we|i} {run|own|operate|have|got} {a|three|four|many|ten|a few|several|a couple of} {data
        center|servers|machines|nodes|boxes|computers|cluster}{ with gpus| in a rack|}{,|.| and} {can they work
        together|can it use all of them|how do they share the work|can they share it|can i join them|how do i use them
        together|is that possible}; {share|split|spread|divide|distribute|balance} {the load|the work|it|requests|the
        model|the traffic} {over|between|among|across|on} {several|many|two|multiple|four|our|all}
        {machines|servers|computers|nodes|boxes}; {one|a single} {machine|server|box|computer} is {not enough|too
        small|too weak|too little}{ for us| for all users| for our users|}; {thousands|hundreds|a lot|many} of
        {users|people|requests|customers}{ at once| at the same time| want to use it|}; {bigger|larger}
        {scale|deployment|installation}{ with many machines| on a cluster|}; {scale|grow|expand|go} {it |this
        |}{out|beyond one machine|to a cluster|to many servers|over several servers|to more machines};
        {cluster|farm|fleet|pool|network} of {machines|servers|computers|gpus|nodes}
        """
    ),
    "what": (
        """
        {what|explain what} {is|are|does} {this|that|it|ossrun|the program} {here |all about|all this about|good
        for|actually do|for exactly|made for}; {i|we} {just |}{found|saw|discovered|heard of|got} {this|ossrun|the
        program|this tool}{,|.| and} {what is it|what does it do|tell me about it|what is it for|explain it};
        {tell|explain|describe|introduce} {me |it |}{what|to me what|in short what} {ossrun|this program|it|this tool}
        {is|does|can be used for}; {explain|describe|present} {ossrun|it|this program|this tool} {to|for} {a|my|an}
        {beginner|newcomer|child|grandmother|manager|colleague|layman|old man|friend}; {ossrun|the program|this tool}{
        in short| in a nutshell| in a few words| explained|, what is it|}; the {point|purpose|goal|aim|use|sense} of
        {ossrun|this|this program|the tool}; {who|what} {needs|is} ossrun{ for|}
        """
    ),
    "who": (
        """
        {with whom|who|to whom|what} {am i|do i} {talking|talk|speaking|chatting|dealing}{ to| with|}{ here| right
        now|}; {are|is} {you|this} {really |actually |}{the real|a real|the big|the true|a clever|an intelligent|as
        good as|as smart as|as clever as|like} {gpt-oss|chatgpt|model|20b|120b|gpt|one|ai|the big ones|the big
        models|a big model}; {how|what} {many parameters|big a brain|large|small|clever|much do you know|size|number
        of parameters} {do you have|are you|have you|is your model|do you own}{?|}; {your|tell me your|what's your|do
        you have a} {name|size|parameters|abilities|limits|age|maker|creator}; {what|which} {sort|type|kind} of
        {model|ai|bot|assistant|thing} {are you|is this|am i talking to}; {you|your answers} {seem|are|sound|look}
        {small|tiny|limited|dumb|simple|strange|repetitive}{, why|, who are you|}; {are|can} you
        {chatgpt|gpt-4|openai|claude|llama|gemini|siri|alexa|human|real|the demo|do more|be trusted|think for
        yourself}; {what|how much} {do you|can you} {know|do|understand|help with}{ about ossrun|}; {why|how} {are|do}
        you {only |}{know|so|answer} {so little|tiny|small|about ossrun|limited|few things}
        """
    ),
    "greet": (
        """
        {hello|hi|hey|good afternoon|good evening|good morning|hallo}{,|!|} {my friend|dear friend|dear
        bot|sir|there|you|everyone|computer|stranger|dear assistant|little one|ai|robot|all of you|friend}{!|.|};
        {anyone|anybody|somebody|someone} {there|here|home}; {hi|hello|hey}{,|!} {is anyone there|anybody there|can
        you hear me|do you hear me|good to meet you|good to talk to you|i just arrived|it's me|long day today|what a
        day|nice day today|let's begin|i'm back}; {good|nice|lovely} {day|morning|evening|afternoon} {to you|to you
        too|everyone|my friend}; {just|only} {saying|wanted to say} {hi|hello}; {are you|you}
        {awake|there|ready|online|here}; {pleased|nice|good|great|happy|lovely} to {meet|see|know} you
        """
    ),
    "thanks": (
        """
        {thanks|thank you|great|perfect|wonderful|super|cool}{,|!|} {that|this|it} {was|is} {just |exactly |precisely
        |all |really |very |}{what i needed|what i wanted|useful|helpful|great|right|kind of you|good|the answer|i
        wanted to know|nice of you|clear}{.|!|}; {thank|thanks} {you |}{so much|very much|a lot|kindly|a
        million|again|for all}{.|!| mate| friend|}; {cheers|thanks|ta|great|nice|cool|ok}{,|}
        {mate|buddy|pal|man|friend|dude}{,|} {it works|works now|that helped|works fine|all good|it runs|that did it}{
        now|}; {i|we} {appreciate|am grateful for|are grateful for|like|love} {it|your help|that|the help|your
        answer|this}; {it|that|this} {works|worked|runs|helped|did it}{ now| great| perfectly| well| fine|}{, thanks|,
        thank you|, great|, cheers|!|}; {ok|okay|alright|right|great}{,|} {thanks|thank you|got it|understood|i
        see|makes sense|clear now}{ a lot| then| very much|}
        """
    ),
    "bye": (
        """
        {ok|okay|well|alright|right|so}{,|} {i'm|i am} {leaving|off|going|out|gone|heading home|going to sleep}{ now|
        then|}{,|} {bye|goodbye|see you|good night|take care|farewell}; {see|talk to|catch|meet} you
        {tomorrow|later|soon|next time|then|next week|another day|around|monday}; {bye|goodbye|good
        night|farewell|cheerio|so long}{,|!|} {my friend|little bot|and thank you|see you tomorrow|until next
        time|have a good one|sleep well|for today}; {have|enjoy} {a|your} {nice|good|great|lovely}
        {day|evening|weekend|night|week}; {that's|that is|this is|it's} {all|it|enough} for {today|now|me}{, bye|,
        goodbye|, thanks and bye|}; {time|i have|i've got} to {go|leave|sleep|run}{ now|, bye|, see you|, goodbye|};
        {until|till} {tomorrow|next time|later|monday|then}
        """
    ),
}
