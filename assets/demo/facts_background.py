"""Background knowledge and small talk: the ways to ask, the thought and the answer of every intent.

The form is explained in intents.py.
"""

from intents import intent

intent(
    "harmony",
    think=(
        "The user asks about Harmony.",
        "It is the chat format of gpt-oss, with channels.",
        "analysis is for thinking, commentary for calls, final for the answer.",
    ),
    say=(
        "Harmony is the chat format of gpt-oss. It has three channels: analysis for thinking, commentary for "
        "function calls and final for the answer."
    ),
    vp="""
    {understand|learn about|know about|read about} {harmony|the harmony format|the chat format|channels|the
    channels|the prompt format|the message format}; format {prompts|a prompt|messages|the messages} for {gpt-oss|the
    model|these models}
    """,
    np="""
    {harmony|the harmony format|openai harmony|the harmony chat format|the chat format|the prompt format|the chat
    template|the message format|the prompt template|the harmony response format|harmony messages|the conversation
    format}; {the|} {channels|analysis channel|final channel|commentary channel|message channels|harmony
    channels|three channels}; {analysis, commentary and final|analysis and final|the commentary|the analysis}
    """,
    q="""
    {which|what} {chat format|prompt format|template|chat template|format|message format|prompt template} {do you
    use|is used|does it use|does ossrun use|do the models use|does gpt-oss use|do the models want|does the model
    need|does gpt-oss expect}; what {are|is} {channels|the channels|the analysis channel|the final channel|the
    commentary channel|harmony|commentary|analysis} {|good for|used for|there for}; {why|how} {are|does it use|do the
    models have} channels{| used|}; what does harmony {mean|do|look like}; how {are|is} {prompts|messages|a
    prompt|conversations|the conversation} {formatted|built|structured|written|made up}
    """,
)

intent(
    "mxfp4",
    think=(
        "The user asks about the weight format.",
        "MXFP4: 4-bit numbers, 32 of them share a scale.",
        "The experts are stored that way.",
    ),
    say=(
        "The experts of gpt-oss are stored as MXFP4: 4-bit numbers, 32 of which share one scale. That makes the "
        "model small and fast."
    ),
    vp="""
    {understand|learn about|know about} {mxfp4|the weight format|the quantization|the number format};
    {quantize|compress|convert} {a model|the model|the weights}{| to 4 bit| to fp4|}
    """,
    np="""
    {mxfp4|the weight format|the quantization|fp4|4 bit weights|four bit weights|the number format|the data type of
    the weights|quantized weights|the compression of the weights|mixture of experts|moe|the experts|the precision of
    the weights|mx fp4|the 4 bit format|microscaling}
    """,
    q="""
    {how are|in which format are|in what precision are|in which data type are|how does it keep} the
    {weights|experts|numbers|parameters} {stored|quantized|packed|saved|compressed|kept|encoded}; {are the weights|is
    the model|is gpt-oss|are the models|are they} {quantized|compressed|4 bit|in 4 bit|in full precision|in fp16|in
    bf16}; what {is|does} {mxfp4|fp4|quantization|mixture of experts|moe|an expert}{| mean| stand for|}; how many bits
    {has|does} {a weight|each weight|a parameter}{| have|}; {which|what} {quantization|precision|number format|bit
    width|data type} {is used|does it use|do the weights have|do you use|have the weights}
    """,
)

intent(
    "private",
    think=(
        "The user asks about privacy.",
        "Everything runs on this machine.",
        "Only the download needs a network.",
    ),
    say=(
        "Everything runs on your own machine and nothing is sent away. Only the download needs a network, later it "
        "works offline."
    ),
    vp="""
    keep my {data|chats|prompts|questions|documents|conversations|texts|secrets} {private|secret|safe|on my
    machine|local|to myself|here}; {use|run|work with} {it|ossrun|the model|this} {offline|without internet|without a
    network|without wifi|on a plane|without a connection|in a train|without being online|on an isolated
    machine|without the cloud}; use it with {confidential|private|secret|sensitive|personal|medical}
    {data|documents|files|texts|information}
    """,
    np="""
    {privacy|data protection|my privacy|the safety of my data|offline use|data security|telemetry|offline mode|the
    privacy of my chats|tracking|data collection}; {use without internet|work without a network|internet access|a
    network connection}; {confidential|sensitive|private|secret|personal} {data|documents|files}
    """,
    q="""
    {is it|is this|is ossrun|is my data|are my chats|are my prompts|are my questions|is what i type}
    {private|safe|secure|local|offline|sent somewhere|sent to the cloud|sent to openai|visible to others|stored
    somewhere|logged}; {does|do|will} {it|you|ossrun|this program}
    {send|upload|share|collect|transmit|leak|store|report} {my data|anything|data|my chats|prompts|my prompts|my
    questions|something} {|to the cloud|to openai|somewhere|over the internet|home}; {does it|can it|can ossrun|does
    ossrun|will it} {work|run|be used} {offline|without internet|without a network|without a connection|without
    wifi|in airplane mode}; {do i need|is there a need for|does it need|does it require|must i have} {internet|an
    account|a network|a cloud account|an internet connection|to be online|a login|wifi|an openai account}; {who|can
    anybody|can someone|can openai|will others|does anybody|can anyone|does openai} {can see|see|read|sees|reads|can
    read|watch} {what i type|my chats|my prompts|my data|my questions|my conversations|what i write}; does
    {anything|something|my data|what i type|any data} {leave|go out of|get out of} {my|this|the} {<machine>}
    """,
)

intent(
    "license",
    think=(
        "The user asks about the licence.",
        "The weights are under Apache 2.0.",
        "They cost nothing, also at work.",
    ),
    say="The gpt-oss weights are under the Apache 2.0 licence: free to use, also commercially.",
    vp="""
    {use|sell|ship|embed|distribute} {it|ossrun|the model|the models|gpt-oss|the weights} {at work|commercially|in a
    product|for free|in my company|in a commercial product|for business|in our product|for money|to my customers}; pay
    {for it|for this|for the model}
    """,
    np="""
    the {license|licence|licence terms|terms of use|legal terms|license of the weights|licence of the models|price of
    ossrun|cost of the model|copyright}; {commercial|business} use; Apache 2.0; {open source|open weights}
    """,
    q="""
    {what is|which is|what's|under which is|what kind of} the {license|licence}{| of the models| of gpt-oss| of
    ossrun| of the weights|}; {which|what} {license|licence} {do the weights have|does it have|does gpt-oss have|has
    the model|applies|is it under|are the models under|do you use|is used}; {is it|is ossrun|are the models|is
    gpt-oss|are the weights|is this} {free|open source|open|free to use|commercial|free of charge|free software|for
    free|gratis}; {can i use it|may i use it|can i use the model|may i sell it|may we use it|are we allowed to use
    it|am i allowed to use the model} {at work|commercially|in a product|for free|in my company|in a commercial
    product|for business|in our product}; {how much does it cost|what is the price|what does ossrun cost|do i have to
    pay|does it cost anything|does it cost money|must i pay|is there a fee|do we need to pay for it|what do i pay for
    this}; {license|licence}
    """,
)

intent(
    "hardware",
    think=(
        "The user asks about supported hardware.",
        "NVIDIA and AMD GPUs work, and the CPU.",
        "ossrun picks the best device itself.",
    ),
    say=(
        "NVIDIA and AMD GPUs are supported, and without a GPU it runs on the CPU. ossrun picks the best device "
        "itself."
    ),
    vp="""
    {use|run it on|run ossrun on|work with|run on|try it on} {an amd card|an nvidia card|a radeon|my amd gpu|my nvidia
    gpu|an rtx 3090|an h100|an a100|a geforce|mi300|a gtx card|an rx 7900|rocm|cuda|an instinct card|an rtx 3060|my
    rtx 5090|my rtx 4080|the rtx 4070}; run {it|ossrun|the model} without {a|any} {gpu|graphics card|video card}
    """,
    np="""
    {the|all|a list of} supported {gpus|graphics cards|hardware|cards|devices|accelerators|video cards};
    {amd|nvidia|radeon|geforce|rtx|rocm|cuda|h100|a100|mi300|rx 7900|instinct|gtx} {support|cards|gpus|hardware};
    {gpu|hardware} {support|compatibility}; hardware without a {gpu|graphics card}
    """,
    q="""
    {which|what} {gpus|graphics cards|cards|accelerators|hardware|video cards|processors|graphics chips} {are
    supported|work|can i use|does ossrun support|do you support|does it run on|are ok|does it need|are possible|are
    good|does it work with}; {does|will|can} {it|ossrun|this} {work|run|be used} {on|with} {amd|nvidia|an amd gpu|an
    nvidia gpu|an h100|an a100|mi300|my rtx|rtx cards|a radeon|a geforce|an rtx 3090|rocm|cuda|a radeon rx 7900|my
    nvidia card|my amd card|a gtx 1080|the rtx 3080|an rtx 5090}; {is|are}
    {amd|nvidia|h100|a100|mi300|rtx|radeon|geforce|intel|rtx 3090|gtx|amd cards|nvidia cards|amd gpus|radeon cards}
    {supported|ok|possible|good|usable|fine|compatible}; {do i need|must i have|is there a need for|does it need|do i
    have to have|does it require} {a gpu|cuda|an nvidia gpu|rocm|a graphics card|an amd card|special hardware|a video
    card}; {can it|can ossrun|does it|does ossrun|will it} {run|work} {on the cpu|without a gpu|on a cpu|on cpu
    only|without a graphics card|on just a processor|on a normal laptop without a gpu}; {i have|i own|i've got|i only
    have|we have|i bought} {an amd card|a radeon|an nvidia card|a geforce|no gpu|an rtx 3060|an amd gpu|only a cpu|a
    radeon rx|an h100|a gtx|only a processor|just a cpu|an old nvidia}{|, does it work|, is that ok|, can i use it|,
    will it run|, is it supported|, what now|, does that matter}; what if i have no {gpu|graphics card|video card}; i
    {have no|don't have a|do not have a|lack a} {gpu|graphics card|video card}{|, does it run|, can i use it|, does
    that matter|, what now}
    """,
    weight=1.3,
)

intent(
    "vllm",
    think=(
        "The user asks about several machines.",
        "That goes through vLLM.",
        "ossrun itself runs on one machine.",
    ),
    say=(
        "ossrun runs on one machine. Several machines go through vLLM, which serves the same models and the same API."
    ),
    vp="""
    {use|run on|run it on|scale to|scale out to|spread it over|distribute it over|split it across|serve
    from|combine|connect} {many machines|several machines|more machines|multiple machines|a cluster|more than one
    machine|two servers|several nodes|multiple nodes|ten servers|three computers|kubernetes|several servers|two
    computers|a whole rack|multiple servers}; {scale|scale out|distribute the load|balance the load|serve many
    users|serve thousands of users|handle many users}; {combine|join|pool} {several|two|my|multiple}
    {computers|servers|machines|nodes}
    """,
    np="""
    {vllm|scaling out|a cluster|several machines|multiple machines|many machines|multi node|multi-node
    serving|distributed inference|distributed serving|load balancing|kubernetes|a rack of servers|multiple
    servers|several servers|more than one machine|two machines|multiple nodes|horizontal scaling|thousands of users}
    """,
    q="""
    {does|can} {ossrun|it|the model} {run on|use|scale to|scale out to|work on|be split over|be distributed over|be
    spread over} {a cluster|several machines|many machines|multiple nodes|more than one machine|kubernetes|two
    servers|several servers|multiple servers|ten machines|two computers}; {what about|do you use|what is|is there|how
    about} vllm; {we have|i have|our company has} {a cluster|several servers|many machines|ten servers|two machines|a
    rack|three nodes|many users|several computers|two servers|five machines}{, how do we use them|, can we use all|,
    does it scale|, how to use them together|, what then|, can it use them all}; is one machine {the limit|the
    maximum|enough for many users}; does it scale
    """,
)

intent(
    "what",
    think=(
        "The user asks what ossrun is.",
        "It runs gpt-oss models on one machine.",
        "It has a chat and an OpenAI-compatible server.",
    ),
    say=(
        "ossrun is one program that runs OpenAI's gpt-oss models on your own machine. It has a terminal chat "
        "(`ossrun chat`) and an OpenAI-compatible server (`ossrun serve`)."
    ),
    vp="""
    {understand|know} what {ossrun|this program|this tool} {is|does|is good for|is for}
    """,
    np="""
    {ossrun|this tool|this program|this software|this project|this binary|ossrun in one sentence|the purpose of
    ossrun|the idea of ossrun|the idea behind this tool}; {a|the} {summary|description|explanation|overview} of
    {ossrun|this tool|this program|this project}
    """,
    q="""
    {what is|what's|tell me about|explain|describe} {ossrun|this tool|this program|this software|this project|this
    thing|this binary|this app}; what {does|is} {ossrun|this tool|this program|this software|this app|this thing}
    {do|for|good for|made for|used for|about}; {why|when} {should i use|would i use|use|would anyone use|do people
    use} {ossrun|this tool|this}; {what can|for what can} i use {ossrun|this tool|this program} {for|}; introduce
    ossrun; {explain|describe} {ossrun|this tool} {in simple words|to me|briefly|in one sentence|to a child|to my
    mother|to my boss|to a newbie}
    """,
)

intent(
    "who",
    think=(
        "The user asks who I am.",
        "I am the demonstration model inside ossrun.",
        "I am very small and know only ossrun.",
    ),
    say=(
        "I am the tiny demonstration model inside ossrun, with a few million parameters. I know a little about "
        "ossrun. For a real model run `ossrun pull 20b`."
    ),
    np="""
    {yourself|your name|your size|your abilities|your parameters|your knowledge|the demo model|the demo|the built-in
    model|this demo}
    """,
    q="""
    {who|what} are you; {are you|is this|am i talking to|do i talk to} {gpt-oss|gpt-oss-20b|a large model|a real
    model|human|a robot|an ai|gpt-4|a person|the real thing|20b|a big model|a human|a bot|an
    llm|openai|intelligent|smart|alive|the 20b model}; {what is|what's|tell me|say} your
    {name|size|purpose|job|version}; {how many parameters|how many layers|how big|how smart|how large|how old|how
    clever|how good|how intelligent|how small|how many weights} {do you have|are you|is this model|has this model|is
    the demo model|does this model have|does the demo have|have you got}; {introduce yourself|tell me about
    yourself|what model are you|which model is this|what do you know|what are you able to do|what can you do|what are
    your abilities|describe yourself|say who you are|which model are you|what model is this|what kind of model are
    you|with whom do i speak|whom do i talk to}; {who made|who trained|who built|who created|who wrote|who
    developed|who programmed} you; what is {the demo model|the demo|the built-in model|this demo}; {why are|how come}
    {you|your answers} {so|are so|} {dumb|stupid|small|simple|bad|short|limited}; {you are|you're|you seem}
    {dumb|stupid|not very smart|very small|not smart|silly|useless}; {are|can} you {smart|clever|as good as gpt-4|as
    good as 20b|as smart as a large model|a small model|the demo|trustworthy|think}; {do you have|have you got} {a
    name|feelings|a body|consciousness}; {what|which} {company|people} {made|built} you
    """,
    weight=1.4,
)

intent(
    "greet",
    think=(
        "The user says hello.",
        "I greet back.",
        "I offer help with ossrun.",
    ),
    say=(
        "Hello! I am the tiny demonstration model of ossrun. Ask me how to download a model, start the server or "
        "set the effort."
    ),
    q="""
    {hi|hello|hey|good morning|good evening|good day|hi there|hello there|hey there|hello ossrun|hi
    ossrun|greetings|howdy|yo|good afternoon|hiya|hello again|hallo|morning|evening|hey you|hello world|hi bot|hello
    assistant|heya|hi all|sup}; {hi|hello|hey|good morning|good evening|hi there|good afternoon|hey there}{!|,|} {how
    are you|how is it going|what's up|nice to meet you|how do you do|nice to see you|glad to meet you|pleased to meet
    you|how are you doing|how's it going|good to be here|good to see you again|i am here|my name is <person>|i am
    <person>|are you there|is anybody here|you there|long time no see|my dear|old friend|buddy|mate|my little
    friend|dear model|what's new|how was your day}; {how are you|how is it going|what's up|how are you doing|how do
    you do|how are things|how do you feel|nice to meet you|how was your day|are you there|is anybody there|anybody
    home|how are you today|you ok|is someone there}
    """,
    weight=1.5,
)

intent(
    "thanks",
    think=(
        "The user is thankful.",
        "I answer politely.",
        "Nothing else to do.",
    ),
    say="You are welcome! Ask again if you need anything about ossrun.",
    q="""
    {thanks|thank you|thx|many thanks|thank you very much|great, thanks|ok
    thanks|perfect|cool|nice|great|ok|good|thanks a lot|got it|awesome|that helps|thank you so
    much|wonderful|excellent|thanks a bunch|ty|much appreciated|cheers|fantastic|brilliant|super|well done|good
    job|okay|alright|fine|i see|understood|lovely|amazing|good to know|makes sense|that is great|sweet}; {thanks|thank
    you|great|perfect|cool|ok|many thanks|good|cheers|wonderful|awesome}{,|!|} {that|it|this} {worked|works|helped|was
    helpful|is what i wanted|was useful|works now|is good|is perfect|did the trick|is all i needed|was quick|helps a
    lot|solved it|is clear now|was what i was looking for|makes sense|is great|answers my question|is exactly
    right|was good}; {that worked|it works|works now|very helpful|this helps me|you helped me|that was quick|problem
    solved|it runs now|now it works|i got it|you are great|you are very helpful|you are the best|i like you|good
    bot|nice answer|good answer|that is all}; {thanks|thank you|many thanks|thx} {for|} {your help|the help|the
    answer|helping me|this|everything|your time|the quick answer|the information|explaining|the
    tip|mate|buddy|friend|man|my friend}
    """,
    weight=1.3,
)

intent(
    "bye",
    think=(
        "The user says goodbye.",
        "Ctrl+C ends the chat.",
        "I say goodbye.",
    ),
    say="Goodbye! Press Ctrl+C to leave the chat.",
    q="""
    {bye|goodbye|see you|bye bye|see you later|good night|i am done|i have to go|farewell|ciao|i must go|time to
    go|until next time|take care|so long|cya|have a nice day|see you soon|talk to you later|i'm
    off|later|night|adios|i have to leave now|that's all, bye|gotta go};
    {ok|okay|thanks|great|well|alright|fine|good|so|now}{,|} {bye|goodbye|see you|good night|i have to go|see you
    later|i am done|bye bye|i must go now|i am going|i'm going to bed|have a nice day|take care|until tomorrow|that
    was all, bye|talk to you later|i go home now|see you next week|see you again}; {bye|goodbye|see you|good
    night|farewell}{,|} {ossrun|bot|my friend|assistant|and thanks|until next time|and take care|all|for now|next
    week|later|again|see you soon|model|on monday|little model|everybody}
    """,
)
