"""More ways to ask about models and flags, for the second training phase (see more.py)."""

MORE = {
    "pull": (
        """
        {i'm|i am} {missing|without|lacking} {a model|the weights|weights|a real model}{, what do i do|, <how>|};
        {there are|i see|it has} no {models|weights} {yet|here|on this machine|so far}{,|.} {<how>|how do i get
        some|what do i run}; {where|how} {does one|can one|do people} {get|download|find|obtain} {the weights|a
        model|gpt-oss|the models}; {<wish>} {the weights|a model|a proper model|a real model|gpt-oss|the real thing}{
        on my <machine>| here| on this <machine>| on my <disk>|}; {bring|put|copy|transfer|move} {the weights|a
        model|gpt-oss} {onto|to|on} {my|this} {<machine>|<disk>}; {the command|a command|what to type} {for|to}
        {getting|downloading|fetching|download|fetch|get} {the weights|a model|models}; {start|begin|do} the download{
        of the model| of the weights| please|}; {it|ossrun} {says|complains|tells me} {that |}{there is no model|no
        model is there|the model is missing|i have no model}; how do i {get|come to|arrive at} {something better|a
        real model|a proper model|the real thing|a bigger model than the demo}; {ok,|so,|well,} {how|where} do i get
        {a|the} {real|proper|better|full|big enough} {model|one}
        """
    ),
    "pull20": (
        """
        {<wish>} {the |}{<small>}{| on this computer| on my disk| here}; {the|a} {small|smaller|little|lighter}
        {model|one}{,|} {how do i get it|please download it|get it|fetch it|i want it|what is the command};
        {20b|gpt-oss-20b|the 20b} {please|on my laptop, how do i get it|download|onto my machine}; {which|what}
        command {brings|gets|downloads|installs|fetches} {the |}{<small>}; {start|begin} {downloading|fetching|the
        download of|pulling} {the |}{<small>}
        """
    ),
    "pull120": (
        """
        {<wish>} {the |}{<big>}{| on this computer| on my disk| here}; {the|a} {big|bigger|large|largest}
        {model|one}{,|} {how do i get it|please download it|get it|fetch it|i want it|what is the command};
        {120b|gpt-oss-120b|the 120b} {please|on my server, how do i get it|download|onto my machine}; {which|what}
        command {brings|gets|downloads|installs|fetches} {the |}{<big>}; {start|begin} {downloading|fetching|the
        download of|pulling} {the |}{<big>}; {i own|i have|we have|we bought} {a|an} {huge|giant|monster|80 gb|very
        big|h100} {gpu|card|machine|server}{,| and} {i want|we want|i'd like|give me|get me} {the |}{<big>}
        """
    ),
    "resume": (
        """
        {half|ninety percent|10 gb|most|a part} {was|is|of it was} {downloaded|there|done|loaded}{,| when| and then|
        before} {it stopped|the network broke|my wifi died|it failed|the power went out|i closed the laptop};
        {do|will|would} i {lose|have lost} {everything|the download|my progress|what was downloaded|all the data}{
        when i stop| if i stop it| after a break| when the connection breaks|}; {can|could|may} i {stop|pause|break
        off|interrupt|shut down during} {the download|it|the pull|downloading}{ and go on later| and continue
        tomorrow| for tonight| and resume|}; {bad|slow|unstable|flaky} {wifi|internet|connection|network}{, will the
        download survive| during the download| while pulling|}; {pick|take} {up |}{the|a|my}
        {half|broken|stopped|unfinished} download {again|where it ended|up again|where it stopped}; {does|will} it
        {start|begin} {from zero|from scratch|over|again at zero} {when|if|after} {the download|the pull|my
        connection|it} {breaks|stops|is cut|fails}; my {computer|laptop|machine} {crashed|rebooted|went to sleep|shut
        down} {during|while|in the middle of} {the download|downloading|the pull}
        """
    ),
    "size": (
        """
        {how many|how much} {gigabytes|gb|traffic|data|megabytes} {will|would|do|must|does} {i|the
        download|it|20b|120b|that} {download|be|need to fetch|cost me|transfer|have}; {is|will} {it|the download|the
        file|20b|120b|that} {be |}{a |}{big|huge|large|small|heavy} {download|file|one}; {i have|i got}
        {slow|limited|little|metered} {internet|data|bandwidth}{,|:} how {big|large} is {it|the download|20b|120b};
        what's the {download |file |}{size|volume} of {20b|120b|the model|the small model|the big model|the weights};
        {how big|how large|what size} {are|is} the {20b|120b|model|small|big} {files|file|model|one|weights};
        {free|how much free} disk space {for|do i need for|is required for} {20b|120b|the download|the model}
        """
    ),
    "where": (
        """
        {where|in what place|in what folder|under which path} {can i find|do i find|do i look for|lie|are|did it
        put|does it put|does it keep} {the|my} {weights|models|downloaded files|model files|files|gigabytes}{ on my
        <disk>| on disk| after the download|}; {what|which} {folder|directory|path} {is it|are they in|does it use|did
        the download use|holds them|contains the model}{ for the weights| for models|}; {and |}where {did|does|do}
        {it|the files|the weights|the model|that} {go|land|end|get saved|get stored}{ on my <disk>| on the disk|
        then|}; {path|folder|location} {to|of} {the|my} {models|weights|cache|downloads}; {i can't|i cannot} find
        {the|my} {downloaded files|weights|model|models}{ on my <disk>|}; {show|tell} me the
        {folder|path|place|directory} {of|with|for} the {models|weights|files|cache}; where on {my|the}
        {<disk>|<machine>} {are|is|do i find} {the weights|the model|the models|the files|they}
        """
    ),
    "hfhome": (
        """
        {my|the} {first|main|small|internal|system|c} {<disk>} {is|has} {too small|no room|not enough space|nearly
        full}{,| so|:} {put|store|save|keep|can the models go|i want the models} {the models |the weights |them |}{on
        the other one|elsewhere|on the second disk|on another drive|on an external drive}; {<wish>} the
        {models|weights|files|cache|downloads} {on|in} {another|a different|my second|an external|my other|the big}
        {<disk>|place|folder}; {is it possible|can i|how do i} {to |}{download|save|put|store|keep} {them|it|the
        model|the weights} {to|in|on|into} {another|a different|my own|some other}
        {folder|place|directory|drive|disk}; {not|other than} {in|under} {my|the} {home|home directory|home
        folder|system disk}{, please| for the models| for the weights|}; {change|set} where {the
        weights|models|downloads|the models} {go|are stored|are kept|are saved|live}; {move|shift|relocate} {the whole
        cache|the models|all weights|my models} {away|elsewhere|to another disk|to the nas|to an external drive}
        """
    ),
    "list": (
        """
        {what|which} {is|do i have|are|have i got} {already |}{on|in} {my|this|the} {disk|cache|machine|computer};
        {what|which} {models |weights |}{did|have} i {already
        |}{fetch|fetched|get|got|load|loaded|grab|grabbed|download|downloaded}; {is|are} {there|anything|some
        models|any weights|something} {already |}{here|downloaded|on this machine|in the cache}; {show|tell|list|give}
        me {everything|all|what} {i have|i downloaded|is here|is installed|is on disk}; {the|an|a}
        {inventory|overview|list} of {my|local|the local|downloaded} {models|weights|files}; {did|have} i
        {download|pull|get|downloaded} {20b|120b|anything|any model|the big one} {yet|already|before|ever};
        {check|see|look} {what|which models} {is here|i've got|are on this computer|are on the disk|exist locally}
        """
    ),
    "rm": (
        """
        {i'm|i am} {done with|finished with|tired of|through with} {the model|20b|120b|this model|the weights}{,|
        and|.} {delete it|get rid of it|remove it|how do i delete it|it can go}; {the|these|those}
        {weights|models|files} {can go|should go|must go|are not needed any more|take too much space|eat my disk|are
        too big|fill my disk}; {<wish>} {my|the} {space|disk space|gigabytes|storage} back; {kick|throw|toss} {it|the
        model|20b|120b|the weights} {out|away|off my disk|in the bin}; {clean|tidy} {up|my disk}{ after ossrun| the
        models| old models|}; {make|create|get} {room|space|some room} {on|in} {my|the} {<disk>|machine}{ again|};
        {what is|the} {opposite of pull|command to undo a pull|reverse of a download}; {undo|reverse} {the|a}
        {download|pull}; {and |}how do i {throw|put|get} {it|the model|them|20b|that} {away|in the trash|off my disk}{
        again|}; remove {it|them|everything}{ from disk| from my machine| again|}
        """
    ),
    "memory": (
        """
        {my|this|the} {laptop|computer|machine|gpu|card|box|mac|server} {only |}{has|comes with|got|owns}
        {8|12|16|24|32|48|64|96} {gb|gigs|gigabytes}{ of ram| of memory| of vram|}{,|.} {will|does|can|is}
        {it|that|20b|120b|the small model|the big model} {work|fit|enough|do|be enough|run}; {what|which}
        {machine|computer|gpu|hardware|card} {do i need|must i buy|is needed|is required|should i buy|would i
        need|runs}{ for 20b| for 120b| for the big one| for the small one|}; {ram|memory|vram} for {20b|120b|the big
        one|the small one|the large model|the small model}; {can|will|does} {my|a|an old|this|a normal}
        {laptop|computer|machine|pc|desktop|macbook} {run|handle|manage|carry|take} {it|20b|120b|the model|the small
        one|the big one}; {is|are} {my|16|24|8|32|80} {gb|gigs|ram|memory|computer}{ of ram|}
        {enough|sufficient|ok|okay|too little|too small}{ for 20b| for 120b| for it|}; how
        {hungry|greedy|demanding|memory hungry} is {it|20b|120b|the model}; {what|how much} does {20b|120b|the
        model|it} {need|want|require|eat}{ in memory| of ram| in ram| at least|}
        """
    ),
    "models": (
        """
        {which|what} {ones|models|llms} {can|could|may} {one|i|we|you} {run|choose|pick|use|select|take|choose from}{
        here| with this| with ossrun|}; {does|will|can} {it|ossrun|this} {only |}{run|support|load|do|handle} {only
        gpt-oss|llama|mistral|qwen|gemma|deepseek|other models|just these two|other llms|models of other companies};
        {i want|i'd like|can i have|i prefer} {to run |to use |}{llama|mistral|qwen|gemma|deepseek|phi|claude}{ here|
        with this| instead|}; {apart|besides|aside} {from|} {gpt-oss|20b|these|those|that}{,| and 120b,|} {is|are}
        {there|what} {anything|more|other models|something else}{ else| like llama| like mistral|}; {the|which|what}
        {sizes|models|variants|flavors} {on offer|exist|are offered|can be had|do you know|are possible};
        {llama|mistral|qwen|gemma|deepseek|phi|gguf}{, does that work| models too| support| here|, is it supported|?};
        {only|just} {two|these|gpt-oss|openai} models; {what|which} is the {choice|selection|range} of models
        """
    ),
    "compare": (
        """
        {is|would} {the |}{bigger|larger|big|120b|smaller|small} {one|model} {be |}{worth it|better for me|much
        better|so much better|good enough|the right one|smart enough}; {which|what} {of the two|of them|one|of both}
        {do you|would you|should i|do i} {recommend|take|advise|choose|need|suggest|pick}; {how|in what} {do|does}
        {20b|the small one|the two|they|both models|the models} {and 120b |and the big one |}{differ|compare};
        {small|20b|the small one} {or|versus|against} {big|120b|the big one|large}{, what do you say| for me| for my
        machine|, what is better|}; {pros|advantages|benefits|strengths} {and cons |and weaknesses |}of {the small and
        the big one|120b over 20b|20b over 120b|both models|each model}; {what|which} {would|do} i {gain|lose|win|get}
        {with|by using|from} {120b|20b|the big one|the small one} {instead|instead of 20b|instead of 120b|over the
        other}; {i can't|i cannot|help me} decide{ between 20b and 120b| which model| which size|}; {take|choose|use}
        the {small|big} or the {large|big|small} {one|model}
        """
    ),
    "effort": (
        """
        {<canit>} {think|reason|ponder|reflect} {a bit |a little |}{more|longer|harder|deeper|less or more}{ before it
        answers| about it| over a question|}; {where|how} {is|do i find|can i turn|do i turn} the
        {dial|knob|setting|switch|button} for {thinking|how much it thinks|reasoning|the depth of thought}; {how|what}
        {much|amount of} {thinking|reasoning} {it does|does it do|is done|it spends}{, can i change that|, how do i
        set it|}; {answers|replies|it} {are|is|seem|seems|feel} {shallow|superficial|too quick|not thought
        out|hasty|careless|thoughtless}{,|.} {let it|make it|can it} {think|reason|ponder} {more|longer|harder};
        {the|its|three} {levels|degrees|settings|modes} of {reasoning|thinking|effort|thought}; {what|explain what}
        {is|does} {this|the} effort {thing|setting|flag|level|stuff}{ do| mean| about|}; {more|less}
        {thinking|reasoning|thought|brain}{ please|}; {regulate|steer|govern|dial|vary} {the|how much}
        {thinking|reasoning|it thinks|effort|it reasons}; {how|can i} {control|set|choose|adjust} {how long|how
        much|how hard|how deep} {it|the model} {thinks|reasons|ponders}
        """
    ),
    "low": (
        """
        {answer|reply|respond} {right away|at once|immediately|without long thoughts|without pondering|straight away}{
        please|}; {i am|i'm} {in a hurry|impatient|short of time}{,|:} {think less|less thinking|make it think
        less|quick answers please|how to get faster thoughts}; {don't|do not|stop|no need to}
        {think|reason|ponder}{ing|} {so much|so long|that long|that much|for so long}; {the |its |}thinking
        {phase|time|part|step} {is|takes|lasts} {too long|far too long|too slow|boring}{,|.|} {shorten it|make it
        shorter|can i cut it|less please|}; {short|little|minimal|brief|low|minimum}
        {thinking|reasoning|thought|effort}{ please| is enough| is enough for me|}; {think|reason}
        {briefly|shortly|only a little|less|not much}{ please| so that it's fast| and answer fast|}; {speed|quickness}
        is {more important than|worth more than} {deep thought|thinking|quality|reasoning}; {quick|fast|rapid|snappy}
        {replies|answers|responses}{ matter| with little thought| without much reasoning| and less thinking|}; let it
        {think|reason} less
        """
    ),
    "high": (
        """
        {think|reason|ponder} {as much as you can|as deeply as you can|very hard|with all your might|to the
        maximum|very carefully}{ please|}; {use|spend|take} {all|the full|full|maximum|as much}
        {thinking|reasoning|effort|brain power|thinking time|time to think}{ you have| it has| as possible|};
        {deep|deepest|heavy|long|extensive|maximum|most intense} {thought|thinking|reasoning|pondering}{ please| for a
        hard problem| is what i want|}; {for|with} {hard|difficult|tricky|math} {problems|questions|tasks|puzzles}{,|}
        {which effort|what setting|how much effort|make it think deeply|i need deep reasoning}; {the|most|very}
        {best|smartest|careful|thorough} {possible |}{answer|thinking|reasoning}{,| and} {time does not matter|i can
        wait|no matter how long it takes|even if it is slow}; {<wish>} {it|the model} to {think|reason} {really
        hard|very long|deeply|as deeply as it can|as long as it takes}; {push|crank|turn} {the
        |}{reasoning|effort|thinking} {up |}to the {max|top|limit|maximum|highest}
        """
    ),
    "effortchat": (
        """
        {i am|i'm} {in|inside|already in} {the|a} chat{,| and} {want to|how do i|can i}
        {switch|change|raise|lower|set} the {effort|reasoning|thinking level|reasoning level};
        {change|switch|raise|lower|toggle} {it|the effort|the reasoning|the thinking} {during|in|inside|within|in the
        middle of} {the|a|my|our} {chat|conversation|session|talk}; {without|not}
        {leaving|quitting|restarting|closing} {the chat|it}{,|} {change|switch|set|another} {the |}{effort|reasoning
        level|thinking level}; {a|the|which|what} {key|shortcut|hotkey|key combination|button} {for|that changes|to
        change|switches|that switches|changes} {the |}{effort|reasoning|thinking|reasoning effort|thinking level};
        {effort|reasoning level|thinking level} {inside|in|within|during} {the|a} chat; {while|when} {i chat|i'm
        chatting|chatting|i talk to it|we talk}{, how do i|, can i| i want to|,} {change|switch|set} the
        {effort|reasoning|thinking|reasoning effort}
        """
    ),
    "device": (
        """
        {should|will|does|shall} {it|ossrun} {run|compute|work} on {the |}{cpu or gpu|gpu or cpu|the processor or the
        card|processor or graphics card}{, how do i say that|, how do i choose|}; {who|what}
        {decides|says|sets|determines} {whether|if} {it |}{the cpu or the gpu is used|it runs on cpu or gpu|it uses
        the gpu}; {how|where} do i {tell it|say|set|choose|decide} {which device|what device|cpu or gpu|whether to use
        the gpu|where to compute}; {force|make|let} {it|ossrun} {onto|to use|take|use} {the gpu|my graphics card|the
        video card}{ please| and not the cpu|}; {pick|select|set|switch} the {compute
        |}{device|hardware|backend|processor}{ it runs on| it uses|}; {switch|change|move} from {cpu to gpu|gpu to
        cpu|the cpu to the graphics card|processor to graphics card}
        """
    ),
    "cpu": (
        """
        {leave|keep|stay away from} {my|the} {gpu|graphics card|video card|card} {alone|untouched|free|out of
        this|idle}{ please|}; {not|nothing|never|no} {on|with|to} {the|my} {gpu|graphics card|card}{ please|, use the
        processor|, only the cpu|}; {i need|i want|i play games and need} {the|my} {gpu|graphics card} {for|free for}
        {games|something else|rendering|other work|video editing}{,|.} {use the cpu|so run on the cpu|can it stay on
        the processor}; {run|work|compute|stay|start} {purely|only|just|exclusively|solely} {on|with} the
        {cpu|processor}; {can|could|will} {it|i|ossrun} {be told|be forced|be made|force it|make it} to {use|run
        on|stay on} {only |just |}the {cpu|processor}; {no|without|ignore the|forget the} {gpu|graphics card}{ please|
        use| even if there is one| although i have one|}; {cpu|processor} {only|alone|mode}{ please|}; it
        {should|must|shall} not {use|touch|take|occupy} {my|the} {gpu|graphics card|video card}
        """
    ),
    "gpu": (
        """
        {which|what} {one |}of {my|the} {two|three|four|several|many|} {<card>s|cards|gpus|graphics cards} {does
        it|will it|should it|is} {use|used|take|taken}; {only|just} {the|my} {first|second|third|other|last|bigger}
        {gpu|card|graphics card|one}{ please| should be used| should work|}; {i've got|i have|there are|we own|this
        box has} {two|2|three|four|several|a pair of} {gpus|cards|graphics cards|rtx cards|nvidia cards}{,|.}
        {use|take|how do i use|i want|pick} {only |}{the second|one of them|both|the first|all of them|the other one};
        {assign|give|bind|pin|limit} {it|ossrun|the model} to {one|a|the first|the second|a certain|a single}
        {gpu|card|graphics card}; {gpu|card} {number|index|0|1|zero|one|two}{ please| only|}; {leave|keep} {one|the
        first|the second|the other} {gpu|card|graphics card} {free|for other things|alone}; {use|employ|run on|spread
        over} {both|all|two|several} {of my |my |}{cards|gpus|graphics cards}{ together| at once|}
        """
    ),
    "threads": (
        """
        {my|the} {whole |}{computer|machine|laptop|desktop} {is|gets|becomes} {slow|unusable|sluggish|blocked}
        {while|when|because} it {runs|computes|takes all cores|uses all cores|works}; {how|can i}
        {limit|reduce|cut|restrict|lower} {its |the |}{cpu|cpu use|processor use|cpu load|cores|core use}; {it|ossrun}
        {should|must|may|shall} {use|take|only use|take only|occupy} {only |just |}{four|two|half|some|a
        few|less|fewer|8|2|4} {cores|threads|of my cores|cpus}; {all|every one of} my {cores|cpus|threads} {are|is}
        {busy|at 100 percent|taken|occupied|in use}; {how many|the number of} {cores|threads|cpus|workers}{ it should
        use| it may use| can i give it| for the computation|}; {leave|give|keep} {me|other programs|my browser}
        {some|a few|two|enough} {cores|threads|cpu}; {more|fewer|less} {cores|threads|cpu power}{ please| for it|}
        """
    ),
    "context": (
        """
        {my|this|the} {<doc>|text|prompt|conversation|input} {is|gets|was} {too |very |extremely
        |}{long|big|large}{,|.| and} {does it fit|can it read it|it does not fit|how do i make it fit|what can i do|it
        gets cut}; {how|can i|i want to} {give|feed|show|paste|put in|read} {it |}{a whole|an entire|a long|a very
        long|a big|a 100 page} {<doc>|text|conversation|file}; {how much|how many words|how many pages|how much text}
        {can|does|will} {it|the model} {read|remember|take|hold|keep in mind|understand}{ at once| at a time|};
        {it|the model} {forgets|lost|does not remember|can't recall} {what i said|the start|the beginning|the first
        part}{ earlier| of the conversation| of the text| long ago|}; {a|the}
        {bigger|longer|larger|wider|smaller|shorter|maximum} {context|window|memory for text|context window|prompt}{
        please|}; {increase|raise|extend|lengthen|enlarge|widen|double|set} the {context|context window|window|context
        length|maximum length of the prompt|token window}; {input|prompt|text|<doc>} {too long|is cut off|gets
        truncated|exceeds the limit|exceeds the context}
        """
    ),
    "temperature": (
        """
        {it|the model} {writes|says|talks|answers|produces} {nonsense|wild things|too wildly|strange stuff|crazy
        stuff|too creatively|always the same boring thing}{, can i calm it|, less random please|, how do i tame it|};
        {calm|tame|cool} {it|the model|the output|the answers} down; {less|more|no}
        {chance|randomness|creativity|variety|variation|surprise|chaos}{ in the answers| please| in the output|};
        {<wish>} {more|less} {creative|random|varied|boring|predictable|wild|surprising}
        {answers|output|texts|replies|stories}; {how|where} do i {set|change|lower|raise|find} {the
        |}{temperature|temp|randomness|creativity}; {set|put|turn} {the |}temperature {to|down|up|at}{ 0| zero| one|
        0.5|}; {the|its} {answers|output|sampling|replies} {vary|varies|change|jump|differ} too {much|little|wildly};
        {sampling|output} {temperature|randomness|heat}; {make|keep} {the answers|it|the output}
        {stable|focused|sober|serious|predictable|less wild|more lively|spicier}
        """
    ),
    "topp": (
        """
        {nucleus|top p|top-p|top_p} {please|value|sampling|parameter|cutoff|setting|flag}{?|}; {how|where} do i
        {set|use|enable|change|give|find} {nucleus sampling|top p|top-p|top_p|the nucleus}; {is|does} {nucleus
        sampling|top p|top-p|top_p} {there|supported|available|work|possible|exist}{?|}; {limit|restrict}
        {sampling|it|the choice} to the {likeliest|most likely|most probable} {tokens|words}; {the |}cumulative
        probability {cutoff|limit|threshold}{ of sampling|}; {cut|drop|skip|leave out} the
        {unlikely|improbable|rare|tail} {tokens|words|of the distribution}
        """
    ),
    "seed": (
        """
        {each|every} {time|run|call} {it says|i get|it gives|there is|it prints} something {else|different|new}{,|.|
        and|} {how do i fix that|i want it the same|can it be the same|<how>|make it the same}; {the|two}
        {same|identical|equal} {answer|output|text|result|runs|results}{ twice| every time| again| for the same
        question| each time i run it|}; {for|in} {my|a|our} {tests|test|experiment|paper|study|science}{ i need|
        results must be| output must be| it should be|} {reproducible|repeatable|the same|deterministic|identical}{
        results| output| answers|}; {exactly|always} the same {words|text|output|reply|result|answer}; {can|could}
        {the |my |}{results|answers|output|runs|experiments} be {reproduced|repeated|made the same|identical|made
        deterministic}; {fix|freeze|pin} the {randomness|random numbers|dice|chance|seed}; {random|fixed|same}
        {seed|number seed|start value}{ please|}
        """
    ),
    "maxtokens": (
        """
        {it|the model} {writes|says|talks|answers} {too much|far too much|whole novels|too many words|endlessly|pages
        and pages}{,|.|} {can i limit that|cut it|limit it|make it shorter|<how>|}; {at most|no more than|maximum|not
        more than|only} {100|200|50|300|500} {tokens|words}{ please| per answer| for the answer|}; {keep|make} {the
        answers|it|the replies|the output} {short|shorter|brief|small|below a limit|under 100 tokens}; {a|the|some}
        {limit|cap|maximum|ceiling|bound} {on|for|of} {the |its
        |}{length|answer|answers|reply|replies|output|tokens|generated tokens}; {stop|end|cut} {the answer|it|the
        output|the reply} after {100|a few hundred|n|some|a number of|so many} tokens; {how|can i}
        {limit|cap|restrict|bound} {the |its |}{length|output|answer length|reply|amount of text|number of words};
        {short|shorter} {answers|replies|output}{ please| only|, how| are enough|}; the {replies|answers|texts}
        {should|must} be {short|shorter|no longer than 100 tokens|limited}
        """
    ),
    "system": (
        """
        {<wish>} {it|the model|the assistant} to {be|play|act as|sound like|talk like|answer as|behave like} {a
        pirate|a teacher|a doctor|a poet|my butler|an expert|a child|a lawyer|shakespeare|a robot|a comedian}{ all the
        time| always|}; {always|only} {answer|reply|talk|speak} in {german|french|spanish|rhymes|english|one
        sentence|a friendly tone|italian|short sentences}{, how do i tell it| please| how can i set that|};
        {give|tell|hand} {it|the model|the assistant} {instructions|rules|a role|its role|a character|background
        information}{ before the chat| first| at the start| for all answers|}; {general|fixed|permanent|own|my}
        {instructions|rules|orders|guidelines}{ for the model| for the assistant| for all answers|}; {where|how}
        {is|do i set|do i give|can i put} {the|a|my} {system prompt|system message|persona|role|instructions|standing
        orders}; {the |a |my own |}system {prompt|message|text}; {it|the assistant} {should|must|shall} {always |}{be
        polite|be funny|answer in french|follow my rules|know who i am|play a role|talk like a pirate|use short
        words}; {define|write|set} {who|how|what} {it is|it should be|it behaves|it should answer|it should sound
        like}
        """
    ),
    "json": (
        """
        {another|my|a|the next} {program|script|tool|process} {should|must|has to|wants to|needs to|will}
        {read|parse|use|understand|process} {the|its} {output|answer|result}{, what format| easily|, can i have
        json|}; {the|its} {output|answer|result} {in|as} a {format|form|structure} {for|that}
        {machines|programs|scripts|a program can read|my script can parse|i can parse}; {<wish>} {json|machine
        readable output|structured output|the output as json|output i can parse|json instead of text};
        {json|jq|structured data|machine output}{ please| instead of text| for my script|, is that possible|};
        {can|could|may} {the|its|i get the} {answer|output|result|data} {be|come|as|in} {in json|as
        json|json|structured|parsed by a program}; {easy|easily|simple} to parse {output|results|answers};
        {pipe|send|feed} the {output|result} {into|to} {jq|another program|a json parser}
        """
    ),
    "configfile": (
        """
        {i'm|i am} tired of {typing|writing|repeating|giving} {the|all the|these|the same}
        {flags|options|arguments|settings}{ every time| again and again|}; {remember|keep|store|save|make} my
        {choice|choices|favorite options|favorite flags|preferences|settings|defaults|temperature setting|effort}{ for
        the next time| forever| for good| permanent|}; {where|in which file|what file} {do|can|are} {i |my |the
        |}{settings|defaults|set defaults|write my defaults|put the flags|options} {stored|go|live|permanently|be
        kept|}; {do|must|should} i {give|type|write|pass|enter} {the|all|these|so many} {flags|options|arguments}
        {each|every} {time|day|start}; {a|the|is there a} {file|place|yaml} {for|with|where i put} {settings|my
        settings|defaults|flags|options|preferences|configuration}; {permanent|default|standard|standing}
        {values|flags|options|temperature|effort|port}; {set|configure} it {once|one time|permanently} {and for
        all|and forget|for all runs|in a file}; {config|configuration|settings|preferences}{ file| please| where|}
        """
    ),
    "config": (
        """
        {i have|there are|i want} {two|several|different|many} {config files|configurations|yaml files|settings
        files}{, how do i choose| for different projects| for work and home|, which one is used|};
        {read|load|take|use} {the |my |}{settings|flags|options|configuration} from {another|a different|my own|some
        other|a certain|this} {file|path|yaml|place}; {not|instead of} the {default|usual|normal|standard}
        {config|config file|configuration|settings file}{, but my own| please|, another one|}; {give|pass|hand} it
        {a|another|my|a special} {config|configuration|settings} file; {point|direct} {it|ossrun} {to|at}
        {another|my|a different} {config|configuration|yaml|settings} file
        """
    ),
}
