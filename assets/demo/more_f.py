"""Everyday ways to ask about the machine, the formats, the project and small talk, from the sixth training phase on."""

MORE = {
    "doctor": (
        """
        {is|was|did} {my|the} {gpu|graphics card|card|hardware|nvidia card|amd card}
        {detected|found|seen|recognized|used|visible|there|it see}; {why|how come} {is|does} {my gpu|the gpu|the
        card|it} {not used|not found|not detected|ignored|not work|not use my gpu|run on the cpu|idle};
        {check|diagnose|inspect|examine|analyze|test} {my|the|this}
        {machine|hardware|system|setup|installation|computer|gpu|environment|drivers}; {what|which}
        {hardware|devices|gpus|gpu|cpu|memory|machine} {does it see|do i have|does ossrun detect|is there|was
        found|does it find|has this machine}; {something|it} {is wrong|doesn't work|fails|is broken|behaves
        strangely}{, how do i find out why|, diagnose it|, where do i look|}; {system|hardware|machine|gpu}
        {report|check|info|information|diagnosis|details|status|overview}; {does|can} {it|ossrun}
        {see|find|detect|recognize} my {gpu|card|graphics card|hardware}; {troubleshoot|debug|find problems with} {my
        setup|the gpu|the installation|ossrun|my machine}; {driver|cuda|gpu} {problem|problems|trouble|issue};
        {can|will} {my|this} {machine|laptop|computer|pc} {run|handle|manage} {it|the model|gpt-oss|120b|20b}; {how
        much|what} memory {does my machine have|is free|have i got|do i have}
        """
    ),
    "selftest": (
        """
        {verify|check|test|validate|prove} {the|its|your}
        {kernels|numerics|computations|arithmetic|calculations|numbers|math}{ on my machine| on my gpu| on this
        hardware|}; {self test|selftest|self-test|self check}{ please| of the kernels|}; {are|is} the
        {kernels|results|computations|numbers|matrix products|math} {correct|right|exact|ok|broken|computed
        correctly|trustworthy}{ on my gpu| here| on this card|}; {does|can} {my|the|this} {gpu|cpu|machine|card}
        {compute|calculate} {correctly|right|rightly|without errors}; {run|start|do} {a|the} {self
        test|selftest|kernel test|correctness test|sanity check}; {wrong|strange} {numbers|results}{, test the
        kernels|, is my gpu broken|}; {compare|check} {the kernels|it} {with|against} {a|the} reference
        """
    ),
    "bench": (
        """
        {measure|benchmark|test|determine|time|find out|check} {the |its |my |}{speed|performance|throughput|tokens
        per second|tok/s|latency|token rate|how fast it is}{ on my machine| of my gpu| here|}; {how fast|how quick}
        {is|does|will} {it|20b|120b|the model|my machine|my gpu|ossrun} {run|generate|be|here|write|on my machine|};
        {how many|number of|what} {tokens per second|tokens a second|tok/s|tokens} {do i get|does it make|does it
        reach|can i expect|does my machine do|will i get|per second}; {speed|performance|benchmark|throughput}
        {test|numbers|measurement|figures|results|check}; {run|start|do} {a|the} {benchmark|speed test|performance
        test|measurement}; {compare|measure} {two|my} {machines|gpus|cards|computers} {by speed|in speed|}; benchmark
        """
    ),
    "slow": (
        """
        {it|the model|ossrun|everything|generation|the answer|this thing} {is|runs|feels|writes|seems|has
        become|answers} {so |very |too |terribly |painfully |really |much too |a bit |}{slow|slowly|sluggish|laggy}{
        here| on my machine|}{, what can i do|, why|, help|, how do i speed it up|}; {speed|make}
        {it|things|this|generation|the model} {up|faster|quicker|run faster}; {why|how come} is {it|the
        model|this|generation} so {slow|sluggish|laggy}; {only|just} {one|two|three|a few|5|2} {tokens|words|token}
        {per|a} second; {faster|quicker|more speed|more tokens per second|better performance|higher throughput}{
        please| possible|}; {takes|it takes|i wait} {forever|ages|minutes|too long|so long}{ for one answer| to
        answer| for a reply| per answer|}; {improve|increase|boost} {the |}{speed|performance|throughput};
        {tips|tricks|advice} for {more speed|better performance|faster answers}
        """
    ),
    "oom": (
        """
        {out of memory|oom|memory error|cuda out of memory|not enough memory|allocation failed|not enough
        vram|insufficient memory}{ error| when loading| what now| help| on my gpu|}; {it|the model|ossrun|120b|20b}
        {does not|doesn't|won't|will not} {fit|fit into memory|fit in my ram|load because of memory|fit on my gpu|fit
        on my card}; {i|my machine|my gpu|my card} {have|has|have got} {too little|not enough|only a little|very
        little} {memory|ram|vram}; {use|need|consume|take} less {memory|ram|vram}; {reduce|lower|cut|save} {the
        |}{memory|ram|vram|memory use|memory usage|memory footprint}; {it|ossrun|the process} {was killed|got
        killed|crashes|crashed|dies|died} {by the oom killer|for lack of memory|when loading|because memory ran
        out|out of memory}; {ran|runs|running} out of {memory|ram|vram}; {memory|ram|vram} is {full|exhausted|too
        small|not enough|used up}
        """
    ),
    "eval": (
        """
        {grade|evaluate|score|rate|assess|judge|examine} {a|the|my} {model|models|checkpoint|quality|answers}{ on
        questions| on a test set| on a benchmark|}; {how|what} {good|accurate|clever|smart} is {a|the|this}
        {model|checkpoint}{ really| on questions| on tests|}; {accuracy|quality|score|evaluation|exam|quiz|grade}{ of
        a model| of the model| test| on questions| on mmlu| on gsm8k|}; {how many|what share of|which percentage of}
        {questions|answers|tasks|test questions} {does it get right|are right|are correct|can it answer|does the model
        answer correctly}; {test|measure|check} the {quality|accuracy|correctness|intelligence|knowledge} of {a
        model|the model|answers|20b}; run {an evaluation|evals|an eval|a test set|the evals|a quality test};
        {does|has} {quantization|mxfp4} {hurt|change} {quality|accuracy}
        """
    ),
    "harmonycmd": (
        """
        {encode|tokenize|turn|convert|translate} {text|a text|a string|a sentence|words|my text} {into|to|as}
        {tokens|token ids|ids|numbers}; {decode|turn|convert|translate} {tokens|ids|token ids|numbers} {back
        |}{into|to} {text|words|strings}; {count|see|show|inspect|look at|get} {the |}{tokens|token ids|number of
        tokens|tokens of a text|tokenization}; {render|format|convert|turn} {a |}{conversation|messages|a chat|a
        dialogue} {into|to|as} {tokens|harmony|the harmony format|a prompt}; {parse|read|split} {tokens|harmony
        tokens|model output|raw output|completion tokens}{ into messages|};
        {tokenizer|tokenize|tokenization|encoding|decoding} {tool|command|test|from the command line|on the shell|};
        {how many tokens|number of tokens} {has|are in|is} {my|a|this} {text|prompt|sentence|file}; {debug|inspect}
        the {harmony format|prompt format|raw prompt|tokens}
        """
    ),
    "version": (
        """
        {which|what} {version|release|build} {is this|do i have|am i running|is installed|of ossrun is this|have i
        got|do i use}; {show|print|tell me|display|check|see} {the |its |your |}{version|version number|build
        number|release|release number}; {is|am} {ossrun|it|this|i} {up to date|current|the latest version|the
        newest|recent enough}; {version|release|build} {number|info|information|please}; how {old|new|recent} is
        {this|my|the} {ossrun|build|version|release|program}; {for|in} {a|my|the} {bug report|issue|support
        request}{,|} {which|i need the} version
        """
    ),
    "completion": (
        """
        {tab|shell|command|bash|zsh|fish|auto} {completion|completions|autocomplete}{ for ossrun| setup| script|
        please|}; {complete|autocomplete|finish} {commands|flags|the flags|verbs|ossrun commands|what i type}
        {with|by|when i press|using} {tab|the tab key}; {can|does|will} {bash|zsh|fish|my shell|the shell|tab|the
        terminal} {complete|autocomplete|suggest} {the |its |}{flags|commands|verbs|options|ossrun commands}; {set
        up|install|enable|activate|turn on|get|add} {tab |shell |bash |zsh |fish
        |}{completion|completions|autocomplete|autocompletion}; {pressing |hitting |}tab {does nothing|doesn't
        work|should complete|completes nothing}; {autocomplete|autocompletion|completions}{ in bash| in zsh| in fish|
        in my shell|}
        """
    ),
    "harmony": (
        """
        {what is|what's|explain|describe|tell me about|how does} {harmony|the harmony format|the chat format|harmony
        format|the prompt format|the message format|the response format}{ work| look|}{ of gpt-oss| of openai|};
        {which|what} {format|chat template|prompt format|template|message format} {does gpt-oss use|is used|do the
        models use|does the model speak|do prompts have|was it trained on}; {channels|roles|special
        tokens|messages|analysis, commentary and final|the analysis channel|the final channel|the commentary
        channel|channel tokens}{ of harmony| in harmony| in gpt-oss|}; {what|how many} {channels|kinds of messages}
        {are there|exist|does gpt-oss have|does harmony have}; {meaning|purpose|role} of the
        {analysis|commentary|final} channel; {chat|prompt|conversation} {template|format|syntax|layout}{ of gpt-oss|};
        where does {the thinking|reasoning|its reasoning} go in {the format|harmony|the output}
        """
    ),
    "mxfp4": (
        """
        {what is|what's|explain|describe|tell me about} {mxfp4|mx fp4|the weight format|the number format|the 4-bit
        format|the 4 bit format|the quantization|fp4}{ in simple words| exactly|}; {how|in which format|in what
        format|in which precision} are the {weights|experts|parameters|numbers}
        {stored|saved|quantized|compressed|encoded|kept}; {is|are} {the model|it|gpt-oss|the weights} {quantized|4
        bit|4-bit|compressed|in 4 bits|reduced in precision|bf16|in fp16}; {quantization|precision|bits per
        weight|number format|weight format|four bit weights|4-bit weights|bit width}{ of gpt-oss| of the weights| of
        the experts|}; {why|how} {is|can|does} {the model|20b|120b|gpt-oss} {so small|fit in 16 gb|fit so little
        memory|be so small|so compact|only 13 gb}; how many bits {has|does|are in} {a weight|each weight|one
        weight|every parameter}{ have|}; block {scale|scaling|floating point}; microscaling
        """
    ),
    "private": (
        """
        {is|are|do|does} {my data|my prompts|my chats|my conversations|anything|my text|what i type|something|my
        documents} {private|sent away|sent to openai|uploaded|sent somewhere|leave my machine|shared|logged|stored|go
        to the cloud|secret|safe|kept private|transmitted}; {does|can|will|is} {it|ossrun|the program}
        {work|run|usable|useful} {offline|without internet|without a network|on an airplane|without a connection|air
        gapped|on a plane}; {do i|does it|must i} need {internet|a network|the internet|a connection|an account|to be
        online|an api key from openai|to log in|a subscription}; {privacy|data
        protection|confidentiality|telemetry|tracking|data collection|gdpr|offline use|security of my data}{ please|
        of ossrun| here|}; {who|can openai|can anyone|can you|does somebody} {can |}{read|see|read along|look at|get}
        {my|the} {prompts|chats|messages|data|conversations|texts}; {does|do} {it|you|ossrun} {phone home|collect
        data|spy|track me|send telemetry|send anything|record what i type|talk to the cloud|contact a server};
        {confidential|secret|sensitive|medical|company|patient} {data|documents|texts|files}{, is that ok|, is it
        safe|, can i use them|}
        """
    ),
    "license": (
        """
        {what|which} {license|licence|terms|conditions} {do the weights have|does gpt-oss have|applies|is it under|are
        the models under|covers the models|is used|do i have to accept|are there}; {may|can|am i allowed to} {i|we|my
        company|a company} {use|sell|ship|deploy|modify|redistribute} {it|gpt-oss|the model|the models|the weights}
        {commercially|in a product|at work|for money|in my company|for business|freely}; {is|are} {gpt-oss|it|the
        models|the weights|the model} {free|open source|free to use|open|free of charge|commercially usable|free for
        commercial use|proprietary}; {license|licence|legal|copyright|apache} {question|terms|of the weights|of the
        models|2.0|situation|conditions|information|}; {does|do|what does} {it|the model|the weights} {cost|cost
        anything|cost money}; {legal|allowed|permitted} {to use|for} {at work|commercially|commercial
        use|business|selling}
        """
    ),
    "hardware": (
        """
        {which|what} {gpus|graphics cards|hardware|cards|processors|machines|devices|platforms|accelerators} {are
        supported|can i use|does it support|work|does it run on|do i need|are ok|will work|does ossrun support};
        {does|can|will|would} {it|ossrun|this} {run|work|support} {on|with|} {amd|nvidia|intel|an amd gpu|a radeon|a
        geforce|an nvidia card|an rtx card|apple silicon|a mac|rocm|cuda|arm|old hardware|my graphics card|an old
        laptop|a raspberry pi}; {supported|compatible|required|necessary|recommended} {hardware|gpus|graphics
        cards|cards|devices|processors}; {do i need|is it necessary to have|must i have|must i buy|is there need for}
        {a gpu|a graphics card|an nvidia card|special hardware|a strong computer|cuda};
        {nvidia|amd|radeon|geforce|intel|cuda|rocm} {support|cards|gpus|only}; {hardware|gpu}
        {support|requirements|compatibility}; what {machine|computer|pc|kind of computer} {do i need|should i buy|is
        needed}; {no|without} {gpu|graphics card}, {does it work|is that ok|will it run}
        """
    ),
    "vllm": (
        """
        {several|many|multiple|two|more than one|a group of|a rack of} {machines|servers|nodes|computers|hosts}{
        together| at once| for one model|}; {cluster|distributed|multi node|multi-node|multinode|scale out|kubernetes}
        {use|serving|inference|support|setup|deployment|mode|}; {scale|spread|distribute|split|shard} {it|the
        model|the load|serving|120b} {over|across|to|out to} {several|many|multiple|two|more}
        {machines|servers|nodes|computers|hosts}; {run|serve|use} {it|the model} on {a cluster|several machines|many
        servers|a datacenter|two computers|kubernetes|more than one machine}; {what about|how about|difference
        to|compared to|what has it to do with|relation to|why not} vllm; vllm; {thousands|hundreds|millions} of
        {users|requests|customers}{, one machine is not enough|, does it scale|}; {connect|combine|join|link}
        {two|several|my} {machines|computers|servers|macs}
        """
    ),
    "what": (
        """
        {what is|what's|what does|explain|describe} {ossrun|this program|this tool|this software|this thing|this
        project|that program}{ good for| do| about| for| exactly| in one sentence|}; {tell me|say something}
        {about|of} {ossrun|this program|this tool|this software}; {purpose|point|idea|use|aim|goal} of
        {ossrun|this|this program|this tool}; why {would|should} i {use|want|need|install} {ossrun|this|it}; {who
        is|for whom is} {ossrun|this|it} {for|made|useful}; {what|which} {kind|sort|type} of
        {program|software|tool|thing} is {this|ossrun|it}; {what|which things} can {ossrun|this program|this tool|it}
        do{ for me|}; {features|abilities|capabilities|functions} of {ossrun|this program|the tool}; ossrun{ in short|
        summary| overview| in a nutshell|}; {introduce|summarize|sum up} {ossrun|this program|this project}
        """
    ),
    "who": (
        """
        {who|what} are you{ really| exactly| then| anyway| actually|}; {are you|you are|aren't you}
        {chatgpt|gpt-4|gpt-oss|gpt-oss-20b|a human|human|a robot|a person|an ai|real|openai|the real model|a big
        model|claude|a bot|alive|the 20b|a language model|the demo|smart|clever|a real ai}; {what|which} {model|kind
        of model|ai|llm|language model} {are you|is this|am i talking to|answers me|is running here|replies here|do i
        talk to}; {your|what's your|what is your|tell me your|do you have a} {name|identity}; {introduce|describe}
        yourself; {tell me|say something} about {yourself|you}; how
        {big|large|smart|clever|good|old|small|capable|many parameters} are you; {who|which company}
        {made|trained|built|created|wrote|programmed|developed|invented} you; {what|which things} {can|do} you
        {do|know|answer|help with|understand}{ for me| about|}; {what are|do you have} your
        {limits|abilities|skills|weaknesses|limitations}; why are you so
        {stupid|limited|dumb|small|simple|tiny|weak|bad}; {who|whom} am i {talking|speaking|chatting} {to|with}; {do
        you|can you} {think|feel|understand me|learn|remember me|know everything}; {can you|could you} {really |}{help
        me|answer my questions|help me with anything|do anything useful}; how many parameters {do you have|have
        you|has this model}; {is|was} this {a real model|the real gpt-oss|gpt-oss|a demo|a toy|chatgpt}
        """
    ),
    "greet": (
        """
        {hi|hello|hey|hiya|howdy|yo|good day|good morning|good afternoon|good
        evening|greetings|moin|hola|bonjour|servus|ahoy|salut|heya|hey ho|hello hello|hi hi|hello again|welcome}{
        there| you| friend| bot| model| everyone| all| ossrun| robot| assistant| buddy| dear| my friend| world|}; {how
        are you|how's it going|how do you do|what's up|how is it going|how are things|are you well|how are you
        doing|you ok|how do you feel|sup|how is your day|nice to meet you|pleased to meet you|good to see you|happy to
        meet you|are you there|anybody there|is anyone there|anybody home|hello?|can you hear me|are you awake|are you
        ready|test|testing|is this on|ping}{ today| friend| this morning|}; {hi|hello|hey|good morning|good
        evening}{,|!|.} {how are you|how is it going|nice to meet you|are you there|how do you do|what's up|i am new
        here|i'm <person>|my name is <person>|it's me}{ today|}; {i am|i'm|my name is|this is|call me} <person>{| from
        <place>}{, hello|, nice to meet you|, hi|}
        """
    ),
    "thanks": (
        """
        {thanks|thank you|thx|ty|cheers|many thanks|thanks a lot|thank you so much|thank you very
        much|merci|danke|gracias|much appreciated|i appreciate it|great, thanks|perfect, thank you|thanks a
        million|big thanks|thank you kindly|much obliged|thanks again}{ for the help| for your help| friend| for that|
        for the answer| bot| for the explanation| for your time|!|}; {that|this|it} {helped|was helpful|helps|was
        useful|works|worked|was great|is great|solved it|is perfect|answers my question|did the trick|was what i
        needed}{ a lot| me| a great deal| now|}{, thanks|, thank you|}; {you are|you're|you were} {great|very
        kind|helpful|nice|awesome|the best|wonderful|a star|so helpful|fantastic|kind|amazing};
        {great|good|nice|excellent|perfect|wonderful|awesome|super|brilliant|cool|well}
        {job|work|answer|done|explanation|help|reply}{, thanks|}; {perfect|wonderful|awesome|great|fine|got
        it|understood|super|nice|cool|excellent}{, thanks|, thank you|, that helps|, that's all i needed|}
        """
    ),
    "bye": (
        """
        {bye|goodbye|good bye|see you|see you later|bye bye|farewell|ciao|so long|take care|good night|until next
        time|later|cya|adios|have a nice day|see you tomorrow|talk to you later|that's all for today|i have to go|i
        must go now|i'm off|i am leaving|have a good one|see you soon|gotta go|enough for today|time to go|sleep
        well|catch you later|until tomorrow|au revoir|tschüss|i'm going to bed}{ now| then| friend| bot| everybody| my
        friend| ossrun| model|}; {ok|okay|well|thanks|thank you|great|fine|alright}{,|} {bye|goodbye|see you|good
        night|i have to go|take care|until next time|i'm leaving|see you later|that's it for today}
        """
    ),
}
