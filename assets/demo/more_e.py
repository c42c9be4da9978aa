"""Everyday ways to ask about models, downloads and flags, from the sixth training phase on (see more.py)."""

MORE = {
    "pull": (
        """
        {download|fetch|get|install|obtain|grab|pull} {a model|the models|the weights|a checkpoint|some
        weights|gpt-oss|a real model|the model files|something better than the demo}{ to my disk| first| onto this
        machine| from hugging face| for offline use|}; {where|how} do i {get|find|obtain|download} {a|the|}
        {model|models|weights|checkpoints}; {no model|nothing} is {installed|downloaded|there|here|on my disk}{
        yet|}{, what now|, how do i get one|}; {i want|i need|i'd like} {a real model|the weights|a proper
        model|gpt-oss on my disk}; {which|what} command {downloads|fetches|gets|installs|pulls} {a model|models|the
        weights|gpt-oss}; {get|have} gpt-oss {onto|on} {this|my} {machine|laptop|pc|disk|computer}; {how|can} do i
        install {a model|gpt-oss}; {model|weights} download; the download command; {prepare|make it ready} for {a
        flight|working offline|no internet}
        """
    ),
    "pull20": (
        """
        {download|fetch|get|install|pull|grab} {the 20b|20b|gpt-oss-20b|gpt oss 20b|the small model|the smaller
        model|the small one|the little one|the 20 billion model|the 20b weights}{ please| now| to my machine| first|};
        {i want|i need|give me|i'd like} {20b|the 20b|gpt-oss-20b|the small model|the smaller one}{ on my laptop| on
        my disk|}; {where|how} do i get {the 20b|the small model|gpt-oss-20b|20 b}; {ossrun|command} {for|to get|to
        download} {20b|the small model}; {my|this} {laptop|pc|machine} has {16 gb|24 gb|little memory}{,|}
        {download|get|pull} the {right model|model that fits|small model}
        """
    ),
    "pull120": (
        """
        {download|fetch|get|install|pull|grab} {the 120b|120b|gpt-oss-120b|gpt oss 120b|the large model|the big
        model|the bigger one|the largest|the 120 billion model|the 120b weights|the best model}{ please| now| to my
        machine| to the server|}; {i want|i need|give me|i'd like} {120b|the 120b|gpt-oss-120b|the large model|the big
        one}{ on my server| on my disk|}; {where|how} do i get {the 120b|the big model|gpt-oss-120b|120 b};
        {ossrun|command} {for|to get|to download} {120b|the large model}; {i have|we have} {an h100|80 gb|a big gpu|a
        large server}{,|} {download|get|pull} the {big|large|best} {model|one}
        """
    ),
    "resume": (
        """
        {the|my} download {broke off|stopped|failed|was interrupted|died|hangs|crashed|got cut|aborted|was
        cancelled|did not finish|is stuck}{ at half| after an hour| at 60 percent| in the middle| halfway|}{, what
        now|, must i start again|, is it lost|, can i go on|}; {continue|resume|restart|finish|complete|pick up|go on
        with|carry on with} {a|the|my} {broken|interrupted|partial|stopped|unfinished|cancelled|failed|half}
        {download|pull}; {wifi|wi-fi|internet|network|the connection|power|my line} {dropped|failed|went
        down|broke|was lost|went out|died} {during|while|in the middle of} {the download|downloading|the
        pull|pulling}; {can|could} i {pause|stop|interrupt} {the|a} download{ and continue later| and go on
        tomorrow|}; {is|are} {the|} {downloaded|partial|half finished} {part|files|data} {lost|kept|wasted|thrown
        away}; do i have to {download|fetch|pull} {everything|it all|all of it} again; {i|my laptop} {closed the
        lid|shut down|rebooted|slept|pressed ctrl+c|lost power} {during|while} the download
        """
    ),
    "size": (
        """
        how {big|large|heavy|many gigabytes|much data|many gb} {is|are|has|have|in} the
        {download|downloads|weights|files|model files|20b download|120b download|models}{ on disk|}; {how much|what}
        {disk space|space|storage|room|disk|bandwidth|traffic|data} {do i need|does it need|does the download take|is
        needed|will it take|does 20b take|does 120b take|is used|do they use}; {gigabytes|gb|size} {of|for}
        {20b|120b|the download|the weights|each model|the models}; {download|file|disk} {size|sizes|volume}; {is|are}
        {my|} {20|50|100|15|60|10} {gb|gigabytes}{ of disk| of space| free|} enough{ for 20b| for 120b| for the
        download|}; how long {does|will} the download {take|last|run}; do {the weights|they|the models} fit {on|onto}
        my {disk|drive|ssd|usb stick}
        """
    ),
    "where": (
        """
        {where|in which folder|in which directory|at which place|in what directory} {are|does it keep|does it
        store|does it put|do i find|does ossrun save|lie|are kept|have gone|is} {the|downloaded|my}
        {weights|models|model files|downloads|files|checkpoints|downloaded model}{ on disk| stored| saved| kept|};
        {location|path|folder|place} of the {weights|models|model files|cache|downloads|checkpoints}; {which|what}
        {folder|directory|path|cache} {holds|contains|keeps|has} the {weights|models|files|downloads};
        {find|locate|look at|back up|copy} the {weights|downloaded files|model files|downloaded models|checkpoint}{ on
        my disk|}; {cache|hugging face cache|model} {folder|directory|location|path}; {my disk|the disk} is
        {full|filling up}{,|} where are the {models|weights}; does it use the hugging face cache
        """
    ),
    "hfhome": (
        """
        {store|save|put|keep|move|download|place} {the|my} {models|weights|downloads|files|cache|model files}
        {on|to|in|onto} {another|a different|an external|a second|my big|a bigger|the data|a network}
        {disk|drive|folder|partition|volume|ssd|directory|place}; {change|move|relocate|set|redirect} the
        {cache|download|model|weights} {folder|directory|location|path|place}; {my|the} {home|root|system|boot|main|c}
        {disk|partition|drive|directory|folder} is {full|too small|tiny|almost full|small}{,|} {put the models
        elsewhere|use another disk|where else can the weights go|how do i use another drive}; {environment
        variable|variable|env var} for the {cache|model folder|downloads|model location}; {download|pull}
        {to|into|onto} {/data|/mnt|my usb drive|another folder|a different path|an external disk}; hf_home;
        huggingface_home; the weights should {be|live|go|lie} {on another disk|elsewhere|somewhere else|on /data|on my
        external drive}
        """
    ),
    "list": (
        """
        {show|list|display|print|see} {all |the |my |}{downloaded|installed|cached|local|available}
        {models|weights|checkpoints}{ on this machine| on my disk| please|}; {which|what} {models|checkpoints|weights}
        {do i have|have i downloaded|are downloaded|are installed|are on my disk|are cached|are here|did i get|are
        already there|lie on this machine}{ already| now|}; {is|are} {20b|120b|the model|a model|any models}
        {already|} {downloaded|installed|here|there|on my disk|cached}; {overview|inventory|table} of
        {my|installed|downloaded} models; {did|have} i {already |}{download|pull|downloaded|pulled} {20b|120b|a
        model|something}; what {have i|did i} {got|pulled|downloaded} so far; how much {space|disk} do my
        {models|downloaded models} {use|take}
        """
    ),
    "rm": (
        """
        {free|reclaim|recover|save|win back} {disk space|space|some gigabytes|storage|my disk|room on my disk};
        {delete|remove|erase|uninstall|drop|get rid of|throw away|wipe} {a|the|my|an old|one|this}
        {model|download|downloaded model|20b|120b|weights|model files|checkpoint}{ from disk| again| from this
        machine|}; {i|we} {don't|do not|no longer} {need|want|use} {20b|120b|the model|this model|the big model|the
        weights}{ any more| anymore|}; {my|the} disk is {full|filled up|too full}{,|} {delete|remove|how do i
        delete|get rid of} {a model|20b|120b|the weights|models}; {clean|tidy} up {the models|my disk|old
        downloads|the cache|downloaded weights}; {how|which command} {to|do i|removes|deletes} {undo|reverse} a
        {pull|download}; {uninstall|removal|deletion} of {a model|models|20b|120b}; the {weights|models} take {too
        much|all my} space
        """
    ),
    "memory": (
        """
        {how much|what|how many gb of} {memory|ram|vram|gpu memory|video memory} {do i need|does it need|is needed|is
        required|do the models need|does 20b need|does 120b need|do 20b and 120b want|must i have|should my machine
        have}; {is|are|will|would} {8|12|16|24|32|64|96|128} {gb|gigabytes|gigs}{ of ram| of memory| of vram|}
        {enough|sufficient|too little|ok}{ for 20b| for 120b| for the big model| for the small model|};
        {memory|ram|vram} {requirements|needs|demand|footprint|usage|consumption}{ of 20b| of 120b| of the models|};
        {can|will|does} {20b|120b|the big one|the small model|gpt-oss-120b|gpt-oss-20b} {fit|run|fits}
        {in|on|into|with} {my|16 gb|24 gb|48 gb|32 gb|80 gb} {ram|memory|of vram|card|gpu|machine|mac};
        {system|memory|minimum|hardware} requirements; how {big|large} must my {ram|memory|gpu memory|card} be;
        {does|will} {20b|120b} {fit|run} on {an rtx 4090|a 3090|my laptop|a 24 gb card|an a100|a macbook}
        """
    ),
    "models": (
        """
        {which|what} {models|llms|language models|model families|checkpoints|sizes} {exist|can it run|does ossrun
        run|are supported|do you support|are available|can i choose from|does it support|can i run|are offered|are
        there|work with this}; {does|can|will} {it|ossrun} {run|support|load|serve|use}
        {llama|mistral|qwen|gemma|deepseek|phi|gpt-4|claude|other models|llama 3|mixtral|gguf files|any model|models
        of other companies|chatgpt}; {only|just} gpt-oss{ or others too| or more|};
        {supported|available|possible|known} {models|model families|architectures|sizes}; {list|name|tell me} {all
        |the |}{supported |available |}models {you can run|ossrun can run|i could download|that exist|which exist};
        {other|more|additional} {models|model families|llms} than gpt-oss; {support|plans} for {llama|other
        models|mistral|qwen|gemma}
        """
    ),
    "compare": (
        """
        {20b or 120b|120b or 20b|small or large|the big or the small one|which model should i take|which model is
        right for me|which one is better|which size}{ for coding| for my laptop| for me|};
        {difference|differences|comparison|trade-off|choice} {between|of} {20b and 120b|the two models|both models|the
        models|the small and the big one|the sizes}; {is|how much is} {120b|the big one|the large model}
        {better|smarter|slower|worth it|so much better|much better|more clever}{ than 20b| than the small one|};
        {compare|contrast} {20b and 120b|the two models|both models|the sizes}; {should|shall} i
        {take|use|choose|prefer|get|download} {20b or 120b|the 20b or the 120b|the large or the small model|the bigger
        one or the smaller}; {which|what} {model|size} {do you recommend|is recommended|suits me|is best|fits
        me|should i pick|gives better answers|is faster|is smarter}; pros and cons of {120b|20b|the big model|both
        models}; {20b|120b} {versus|vs|against|compared to} {120b|20b}
        """
    ),
    "effort": (
        """
        {set|change|choose|control|adjust|select|specify|regulate} {how much|how long|how hard|how deep|how deeply}
        {it|the model|gpt-oss} {thinks|reasons|should think|ponders|may think}; {reasoning|thinking|effort}
        {level|levels|settings|modes|options|strength|budget}; {which|what} {effort|reasoning|thinking}
        {levels|settings|values|modes} {exist|are there|can i choose|does it have}; {can|could} {it|the model}
        {think|reason} {more|less|more or less|longer or shorter}; what {is|does} the {effort|reasoning}
        {flag|option|setting}{ for| do|}; {more|less|deeper} {or less|or shorter|} {thinking|reasoning}, how; low,
        medium {or|and} high; the {amount|depth|length} of {thinking|reasoning|thought}; let me decide how much {it
        thinks|reasoning it does|time it spends thinking}
        """
    ),
    "low": (
        """
        {it|the model|this} {thinks|ponders|reasons|deliberates} {far |way |much |}too {long|much|hard}{, make it
        short| before it answers| for simple questions|}; {less|shorter|minimal|no|hardly any|little}
        {thinking|reasoning|pondering|deliberation}{ please| before answers|}; {answer|reply|respond} {right
        away|immediately|without thinking|faster|at once|straight away|without pondering|without long thoughts};
        {quick|fast|instant|snappy|speedy} {answers|replies|responses|reaction}{ please|}; {i'm|i am} in a hurry{,
        less thinking|, think less|}; {turn|dial|bring} {down|off} the {thinking|reasoning|effort};
        {skip|cut|avoid|shorten} the {long |}{thinking|reasoning|thoughts}; lowest {effort|reasoning|thinking}{
        level|}; {simple|easy|trivial} questions {need no|don't need|without} {thinking|reasoning|deep thoughts};
        speed matters more than {depth|quality|deep thinking}
        """
    ),
    "high": (
        """
        {think|reason|reflect} {harder|more deeply|deeper|longer|as long as you can|very carefully|more
        thoroughly|with full power}{ please| about it| about my problem|};
        {maximum|max|highest|full|top|most|strongest} {effort|reasoning|thinking|depth|brain power}{ please|};
        {hard|difficult|tough|complicated|complex|tricky} {math |logic |coding
        |}{problem|question|puzzle|task|proof}{, think long|, think hard|, which effort|, i want deep thinking|};
        {best|most careful|most accurate|deepest|smartest} {answers|answer|quality|reasoning}{, no matter how long it
        takes| please|}; {take|use|spend} {all the|more|as much} time {to think|thinking|you need|for thinking};
        {turn|crank|dial} {up|the effort up} {the |}{thinking|reasoning|effort}; {quality|accuracy|depth}
        {over|matters more than|before} speed; {answers|it} {should|must} be {well thought out|thought through|as good
        as possible|as careful as possible}
        """
    ),
    "effortchat": (
        """
        {change|switch|toggle|set|raise|lower|cycle} {the |}{effort|reasoning|reasoning effort|thinking level|effort
        level} {inside|in|during|within|while in|in the middle of} {the chat|a chat|a conversation|a running
        chat|chatting|the conversation|a session}; {without|not} {leaving|quitting|restarting} {the chat|}{,|}
        {change|switch|more|less} {the |}{effort|thinking|reasoning}; {while|when} {i am |}chatting{,|}
        {switch|change|set|how do i change} {the |}{effort|reasoning level|thinking|to high effort|to low effort};
        {key|shortcut|slash command|chat command} for {effort|the effort|the reasoning level|more thinking};
        {/effort|what does /effort do|shift+tab|what does shift+tab do|shift tab}; {mid|middle of} {conversation|chat}{,|}
        {change effort|think harder|i want more thinking}
        """
    ),
    "device": (
        """
        {choose|select|pick|set|switch|decide} {between|} {cpu or gpu|cpu and gpu|the device|gpu or cpu|the
        processor|the compute device|where it runs}; {run|compute|work} on {gpu or cpu|cpu or gpu|either cpu or gpu|a
        certain device}; {which|what} {device|processor|hardware} {does it use|is used|will it take|does it run
        on|runs the model}{ by default|}; {device|hardware} {selection|choice|flag|option|setting|switch};
        {force|tell|make} {it|ossrun} {to use|onto|run on|use} {a device|the gpu|a certain device|the graphics
        card|gpu}; {can|may} i {choose|decide} {where|on what} it {runs|computes|is computed}; {use|prefer|force}
        {the|my} {gpu|graphics card|video card} {instead of|not|rather than} the {cpu|processor}; what does --device
        {do|mean|take}; --device {auto|gpu|}
        """
    ),
    "cpu": (
        """
        {run|use|work|compute|go} {only|just|purely|entirely|exclusively} {on|with} {the|my} {cpu|processor}{
        please|}; {without|no|not using|ignore|leave out|skip|disable|don't use|do not use|avoid|turn off}
        {the|my|any|a} {gpu|graphics card|video card|cuda}; {cpu|processor} {only|mode|only mode|inference}; {my|the}
        gpu is {busy|needed for games|used by something else|needed elsewhere|too small|broken|occupied}{,|} {use the
        cpu|run on the cpu|leave it alone|don't touch it}; {keep|leave} {my|the} {gpu|graphics card}
        {free|alone|idle|out of it}; {force|enforce} {cpu|the cpu|the processor|cpu mode}; {does|can|will} {it|the
        model|ossrun} {run|work} without {a gpu|a graphics card|cuda|any gpu}
        """
    ),
    "gpu": (
        """
        {use|take|run on|pick|choose|select|pin to} {the|only the|my} {second|first|third|other|fourth}
        {gpu|card|graphics card}{ only|}; {use|run on|spread over|split over|distribute over|take}
        {both|two|several|all|multiple|four|my two} {gpus|cards|graphics cards}; {which|what} gpu {is used|does it
        take|runs the model}{ when there are several| if i have two|}; {i have|there are|my box has|this server has}
        {two|three|four|eight|several|multiple} {gpus|cards|graphics cards}{, use one|, how do i choose one|, use
        all|, which is used|, can it use both|}; {gpu|card|device} {number|numbers|index|id|ids|1|0|2}; {multi
        gpu|multiple gpus|multi-gpu|more than one gpu|several gpus}; {only|just} gpu {0|1|2|3|zero|one}; {leave|keep}
        gpu {0|1|2} {alone|free}; {restrict|limit|bind} {it|ossrun} to {one|certain|the first|a single}
        {gpu|gpus|card}; --gpu
        """
    ),
    "threads": (
        """
        {limit|set|change|restrict|choose|control|reduce|raise} the {number of |count of |}{threads|cpu
        threads|cores|cpu cores|worker threads|used cores}; {how many|what number of} {threads|cores|cpu cores|cpu
        threads} {does it use|are used|should i use|can i set|will it take}; {use|take} {only |just
        |}{four|two|eight|half of my|all|some|fewer|more|4|8|16} {threads|cores|cpu cores|cpu threads}; {it|ossrun}
        {eats|uses|hogs|occupies|takes} all {my |the |}{cores|cpu|threads|processors}{, limit it|, can i limit that|};
        {leave|keep|spare} {some|a few|two} cores {for|free for} {other work|other programs|the rest};
        {parallelism|thread|core} {count|limit|setting|flag}; my {machine|computer|laptop} {is sluggish|gets
        hot|becomes slow} because it {uses|takes} all cores; --threads
        """
    ),
    "context": (
        """
        {set|change|increase|extend|enlarge|limit|reduce|raise} the {context|context length|context size|context
        window|maximum length|model length|window}; {how long|how large|how big|how many tokens} {can|may|is} {a
        prompt|the context|my text|the input|a conversation|the context window|my document|the history} {be|get|};
        {longer|larger|bigger|smaller|shorter|huge|more} {context|context
        window|prompts|inputs|conversations|documents}; {my|the}
        {document|text|prompt|input|conversation|file|book|pdf} is {too long|longer than allowed|cut off|truncated|too
        big}; {feed|read|put in|process|handle|paste} {a|whole|long|very long|an entire}
        {book|books|document|documents|texts|file|novel|code base}; {context|max|maximum} {length|window|size|tokens}
        {flag|option|setting|limit}; prompt {too long|exceeds the limit|does not fit}; how much {text|context|history}
        {fits|can it remember|can it hold|does it keep}; --max-model-len; {remember|keep} {more|longer} {history|of
        the conversation}
        """
    ),
    "temperature": (
        """
        {set|change|lower|raise|adjust|choose|increase|reduce} the {temperature|randomness|creativity|sampling
        temperature|variety}; {more|less|a bit more|much less}
        {creative|random|varied|wild|deterministic|predictable|surprising|boring|chaotic}
        {answers|output|text|replies|stories|}; {make|let} {it|the answers|the model|replies} {be |}{more|less}
        {creative|random|deterministic|predictable|varied|imaginative|wild|focused|conservative|serious}; {what
        is|explain|what does} {temperature|the temperature flag|temperature 0|--temperature}{ do| mean|};
        {greedy|deterministic|most likely token|argmax} {decoding|sampling|output|answers}; {it|the model}
        {invents|makes up|says} {too much|crazy things|strange things|nonsense}{, make it calmer|, less random
        please|}; {randomness|creativity|temperature} {flag|setting|option|knob}; always {the most likely|the same|the
        most probable} {word|token|answer}
        """
    ),
    "topp": (
        """
        {set|change|use|choose|adjust|what is|explain|lower} {top-p|top p|nucleus sampling|the top-p value|top_p|the
        nucleus}; {nucleus|top p|top-p|top_p} {sampling|value|flag|option|setting|probability|cutoff};
        {sample|choose|draw} only from {the likely|likely|the most probable|probable|the best|the top} {tokens|words};
        {cut|drop|ignore|exclude|leave out} {unlikely|improbable|rare|the least likely} {tokens|words};
        {limit|restrict} {sampling|the choice|it} to {the likeliest|probable|likely|the top}
        {tokens|words|candidates}; cumulative probability; --top-p
        """
    ),
    "seed": (
        """
        {same|identical|reproducible|repeatable|deterministic|equal}
        {answer|answers|output|results|text|replies|result}{ every time| each run| twice| on every run| again and
        again|}; {reproduce|repeat} {an|the|my|a} {answer|result|output|run|reply|experiment};
        {set|choose|fix|pin|give|use} {a|the} {seed|random seed|rng seed|number for the random generator};
        {every|each} {run|time|call} {gives|gets|produces|returns} {another|a different} {answer|text|result}{, can i
        fix that|}; {results|answers|outputs} {differ|change|vary} {each|every|from} {time|run|run to run}; random
        {seed|number generator|state}; make {it|runs|sampling} {reproducible|repeatable}; --seed
        """
    ),
    "maxtokens": (
        """
        {limit|cap|restrict|bound|shorten|set} the {length|size|number of tokens} {of|in} {an|the|its}
        {answer|answers|output|reply|replies|response}; {shorter|short|brief|not so long|limited}
        {answers|replies|output|responses}; {at most|no more than|maximum|up to|only} {100|200|500|a
        hundred|50|fifty|a few hundred} tokens{ per answer| in the answer|}; {stop|end|cut} {after|at} {100|200|500|a
        number of|so many|N} tokens; {answers|replies|the output} {are|is|get|gets} {too long|endless|too wordy|much
        too long}{, limit them|, can i cap them|}; {token|length|output} {limit|cap|maximum|budget}{ for answers| of
        the reply|}; {how many|maximum number of} {output tokens|tokens in the answer|generated tokens}; --max-tokens
        """
    ),
    "system": (
        """
        {set|give|write|use|add|pass|provide|define} {a|my own|own|custom|the} {system prompt|system
        message|instructions|persona|role|character|developer message|rules}; {tell|instruct|order|make} {it|the
        model} {to|} {always |}{answer|speak|behave|write|reply|act} {in french|in german|like a pirate|as a
        teacher|politely|in rhymes|as an expert|in one sentence|in another language|formally}; {it|the model} should
        {always |}{behave|act|talk|answer|speak|play} {like|as|in} {a pirate|a lawyer|a teacher|a doctor|spanish|a
        certain way|german|a role}; {permanent|standing|general|custom|own} {instructions|rules|orders}; system
        {prompt|message|text|instructions|role}; {change|define} {its|the}
        {personality|style|tone|role|behavior|character|manners}; --system
        """
    ),
    "json": (
        """
        {machine readable|machine-readable|structured|json|parsable|parseable}
        {output|answers|format|results|replies}; {output|print|return|give|get|emit|write} {json|as json|in json|json
        objects|json lines|the result as json|structured data}{ please| for my script| for jq|};
        {parse|read|process|consume} the {output|answer|result} {in|with|by} {a program|jq|a script|my code|another
        program}; {pipe|send} the {output|answer} {to|into|through} jq; {can|could} {it|ossrun|the command}
        {print|output|speak|return|give} json; {i want|i need} {json|structured output|machine readable answers}
        {instead of text|not plain text|}; --json; json {flag|option|mode|format}
        """
    ),
    "configfile": (
        """
        {where|how} {do i|can i} {save|store|keep|put|make|write|persist} {my |the
        |}{settings|defaults|preferences|flags|options|configuration}{ permanently| for good| for next time|};
        {set|save|remember|make} {defaults|default flags|my defaults|my settings|my flags permanent|high effort the
        default|a default model}; {config|configuration|settings|preferences|defaults}
        {file|path|location|format|folder}; {i don't want to|must i|do i have to|i hate to} {type|repeat|enter|write}
        the {same |}{flags|options|settings} {every time|each time|again and again|always};
        {permanent|persistent|default|global|saved} {settings|flags|options|configuration|preferences}; {is there|does
        it have|does ossrun have|where is} {a config|a config file|a configuration file|a settings file|the config
        file|a yaml file|an rc file|a place for defaults}; {yaml|toml} {file|config|settings}; {what|which}
        {goes|stands|can i write} {into|in} the config
        """
    ),
    "config": (
        """
        {use|load|read|take|give|pass|specify|point to} {another|a different|my own|a second|an alternative|a
        project|a certain|a custom} {config|config file|configuration|configuration file|settings file|yaml file};
        {several|multiple|two|different} {config files|configurations|profiles|sets of settings};
        {config|configuration|settings file} {from|at|in} {another|a different|my own}
        {path|place|folder|location|directory}; {start|run|serve} with {the settings in|the file|the config}
        {work.yaml|my.yaml|another file|a file}; {switch|choose} between {config files|configurations|profiles};
        --config; {ignore|not use|replace} the {usual|default|normal} config file
        """
    ),
}
