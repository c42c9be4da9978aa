"""The verbs around running models, and the port in service: ways to ask, thought and answer of every intent.

The form is explained in intents.py.
"""

from intents import intent

intent(
    "run",
    think=("The user asks about ossrun run.", "It is chat with the model named.", "ossrun run 20b is ossrun chat --model 20b."),
    say="`ossrun run 20b` is the same as `ossrun chat --model 20b`: a chat with that model.",
    vp="{use|type|do|try} {the|} {run command|run verb|ossrun run|run}{| like in ollama| as in ollama|}; {run|start} {a model|<small>|<big>} {like|as} {with|in} ollama",
    np="ossrun run; ossrun run {20b|120b|demo}; the run {command|verb}; {ollama|ollama's} run{| here| command|}",
    q="what does {ossrun run|run|the run command} do; {is there|do you have} a run {command|verb}; {what is|what's} the {same as|equivalent of} ollama run; {i come|i'm coming|coming} from ollama{, what is run here|, how do i run a model|}; difference between run and chat",
)
intent(
    "show",
    think=("The user wants details of a model.", "The command is ossrun show.", "It tells the shape and what is here."),
    say="Run `ossrun show 20b`. It shows the model's shape and what of it is on this machine.",
    vp="{see|show|get|print|inspect|look at|list|know} {details|the details|more|facts|information|the shape|metadata|the number of layers|the parameters|the properties} {of|about|on} {a|one|the|my|this} {model|20b|120b|20b model|downloaded model}; inspect {a|one} model",
    np="ossrun show; the show {command|verb}; {details|metadata|the shape|the number of layers|the properties} of {a model|20b|120b|one model}; model {details|info|metadata}",
    q="what does ossrun show do; how many {layers|experts|heads} {has|does} {20b|120b|the model}{| have|}; is {20b|120b} {complete|fully downloaded|whole|partly downloaded}{| here| on this machine|}; how much of {20b|120b} {is here|did i download|do i have}",
)
intent(
    "ps",
    think=("The user asks what is running.", "The command is ossrun ps.", "It shows the servers and their models."),
    say="Run `ossrun ps`. It shows the servers that run and their models.",
    vp="{see|show|list|check|find out|know|get|look} {what is running|which servers run|running servers|what runs|which model is loaded|the running models|what is loaded|the loaded models|if a server is running|whether the server runs|if it is still running|what is in memory|the active servers|the status of the server}",
    np="ossrun ps; {the|my|all} {running|active|loaded} {servers|models|instances|processes}; {the|a} {process list|list of servers|server status|status}",
    q="{is|are} {the|my|a|any} {server|servers|model|ossrun} {running|up|alive|loaded|still running|active|online}; {what|which} {servers|models|is|model is} {running|loaded|in memory|active|up}{| now| right now| at the moment|}; what does ossrun ps do; did i {leave|forget} {a|the} server {running|on}; who {eats|uses|takes} my {memory|ram|port}; anything {running|loaded}",
)
intent(
    "stopserver",
    think=("The user wants to stop the server.", "The command is ossrun stop.", "Running requests may end first."),
    say="Run `ossrun stop`, or `ossrun stop 8000` for the server of that port. Running requests may end; `--now` does not wait.",
    vp="{stop|kill|shut down|end|terminate|halt|quit|turn off|close|switch off|take down|bring down|exit|shut off|kill off} {the|a|my|that|the running|this|the background} {server|ossrun server|api|api server|openai server|endpoint|service|ossrun serve|running server|serve process|daemon|openai port}{| again| cleanly| from another terminal| gracefully| that runs in the background|}; free {the port|port 8000|the memory of the server}; {restart|reboot|stop and start} the server; get the {server|model} out of memory",
    np="ossrun stop; ossrun stop --now; {the|a} {server shutdown|graceful shutdown|clean shutdown|stop command|stop verb}; {stopping|killing|ending} {the server|a server|ossrun serve}",
    q="how do i {kill|stop|end|get rid of} {it|the server|this server|that server}{| again|}; {the server|it} {is still running|won't stop|keeps running|still runs|runs in another terminal}{, how do i stop it|, how to kill it|, make it stop|}; what does ossrun stop do; {i'm done|i am finished} with the {server|api}{, how do i stop it|}; does ctrl c {stop|end|kill} the server; server off",
)
intent(
    "keepalive",
    think=("The user wants idle models unloaded.", "The flag is --keep-alive.", "The next request loads the model again."),
    say="Use `ossrun serve --keep-alive 30m`. A model without a request for that time is unloaded, and the next request loads it again.",
    vp="{unload|free|drop|evict|release} {the|an|an idle|unused|a} {model|models|memory|weights|vram}{| when idle| after a while| automatically| when nobody uses it| after ten minutes|}; keep {the|a} model {loaded|in memory|warm}{| for an hour| forever| longer|}; {<change>} {how long|the time} a model stays loaded",
    np="--keep-alive; {the|a|an} {idle|unload} {timeout|time}; {automatic|auto} {unloading|unload}; {idle models|unused models|keep alive|keepalive}",
    q="how long does {the|a} model stay {loaded|in memory}; {when|does|will} {is|it} {the model|} {unloaded|unload|leave memory}; the {idle|unused} {server|model} {eats|holds|keeps|hogs} {my|} {memory|ram|vram}{, can it unload|, can it free it|}; what does --keep-alive do; can it unload {by itself|itself|when idle|after ten minutes}",
)
intent(
    "batch",
    think=("The user wants to run a file of requests.", "The command is ossrun batch.", "It takes OpenAI batch files."),
    say="Run `ossrun batch in.jsonl out.jsonl`. It runs an OpenAI batch file and goes on where it stopped.",
    vp="{run|process|work through|answer|send|do|execute} {a batch|a batch file|many requests|a file of requests|a jsonl file|thousands of prompts|a list of prompts|an openai batch file|1000 questions|a big file of questions|prompts in bulk|many prompts at once|requests from a file|all prompts in a file}{| overnight| in one go| at once|}; batch {process|run} {requests|prompts|questions}",
    np="ossrun batch; {a|the} {batch|batch file|batch job|batch api|batch command|jsonl file|batch run|bulk job}; {batch|bulk|offline} {processing|inference|requests|jobs}; in.jsonl",
    q="{can|does} {it|ossrun} {do|run|support|process} {batches|batch files|batch jobs|the batch api|bulk jobs|openai batch files}; {i have|here are|there are} {5000|thousands of|ten thousand|a file with|2000} {prompts|questions|requests|rows}{, how do i run them all|, how do i process them|, run them overnight|}; what does ossrun batch do; {is there|do you have} a batch {mode|verb|api}",
)
intent(
    "background",
    think=("The user wants the server in the background.", "ossrun serve runs until it is stopped.", "systemd or tmux keep it there."),
    say="`ossrun serve` runs until Ctrl+C or `ossrun stop`. Start it from systemd or tmux to keep it in the background; `ossrun ps` shows it.",
    vp="{run|start|keep|have} {the server|ossrun serve|it|ossrun} {in the background|as a service|as a daemon|at boot|after a reboot|on startup|as a systemd service|under systemd|after i log out|permanently|all the time|24/7}; {start|launch} {the server|it|ossrun} {when the machine boots|automatically|at login|on boot}",
    np="{a|the|an} {systemd service|systemd unit|service|daemon|background server|autostart|launchd agent|startup entry|background service}; {autostart|systemd|launchd|nohup|tmux}",
    q="{does|will} {the server|it} {survive|keep running after} {a reboot|logout|i close the terminal|when i log out}; {the server|it} {dies|stops|ends} when i {close the terminal|log out|close ssh}{, how do i keep it running|}; is there a {service|daemon|systemd unit|background mode}; can it {start|run} {at boot|as a service|by itself}",
)
intent(
    "many",
    think=("The user asks about many requests at once.", "The flags are --preset and --max-num-seqs.", "Requests are computed together."),
    say="Requests are computed together. `ossrun serve --preset throughput` (or latency, balanced) sets how many; `--max-num-seqs N` sets the number itself.",
    vp="{<change>|limit} {how many requests run at once|the number of parallel requests|concurrency|the batch size|the number of users at once|how many run together|the number of sequences}; {serve|handle|answer} {several|many|ten|a hundred|100|parallel} {requests|clients|people|users|connections} {at once|at the same time|in parallel|together}; {tune|optimize} {it|the server} for {throughput|latency|many users}",
    np="--max-num-seqs; --preset; {parallel|concurrent|simultaneous} {requests|users|clients|connections}; concurrency; continuous batching; {the|a} {throughput|latency|balanced} preset; {a|the} full queue; {error|status|a} 429",
    q="how many {requests|clients|people|users} {can it handle|at once|in parallel|at the same time|can use it at once|can it serve}; {can|does} {it|the server} {answer|serve|handle|do} {two|several|many|parallel} {requests|people|users|clients}{| at once| in parallel| at the same time|}; what does {--preset|--max-num-seqs} do; {i get|clients get|it says|why} {429|too many requests|a 429}; are requests batched",
)
intent(
    "watch",
    think=("The user wants to watch the server.", "/metrics has Prometheus text, /health says if it is ready.", "The names are vLLM's."),
    say="`/metrics` of the server has Prometheus text, and `/health` and `/ready` say whether it is ready. `ossrun ps` shows what is loaded.",
    vp="{monitor|watch|observe|measure|track} {the|my|a} {server|port|api|running server|requests}{| with prometheus| with grafana|}; {check|see|test} {if|whether|that} the {server|api|model} is {ready|healthy|up|fully loaded}{| by script| from a script|}; get {metrics|statistics|prometheus metrics|numbers} {of|from} the server",
    np="/metrics; /health; /ready; {prometheus|grafana|metrics|monitoring|statistics|a health check|a readiness probe|a liveness probe|server metrics|health checks|a kubernetes probe|the server log|--log-level}",
    q="{does|has} {it|the server} {have|export|offer|got} {metrics|prometheus metrics|a health check|statistics|a health endpoint}; when is the {server|model} {ready|loaded|up}; how does my {script|load balancer|kubernetes} know {it is ready|the server is up|that it is healthy}; prometheus",
)
intent(
    "tls",
    think=("The user wants TLS.", "The flags are --ssl-certfile and --ssl-keyfile.", "Then the port speaks https."),
    say="Use `ossrun serve --ssl-certfile cert.pem --ssl-keyfile key.pem`. The port then speaks https.",
    vp="{use|enable|turn on|set up|serve|have|get} {https|tls|ssl|encryption|a certificate|an encrypted connection}{| on the server| for the port|}; {encrypt|secure} the {connection|traffic|port|api}{| with tls| with a certificate|}",
    np="{https|tls|ssl|a certificate|encryption|certificates|an encrypted port|--ssl-certfile|--ssl-keyfile|letsencrypt}{| for the server| support|}",
    q="{can|does} {it|the server|ossrun serve} {speak|do|use|support|have} {https|tls|ssl}; {i have|where do i put} {a certificate|my certificate|the cert and key}; is the {connection|traffic} encrypted; http or https",
)
intent(
    "origins",
    think=("The user has a web page that calls the port.", "The flag is --allowed-origins.", "By default only pages of this machine may."),
    say="Use `ossrun serve --allowed-origins https://my.page`. By default only web pages of this machine may use the port; `--allowed-hosts` names the server's own names.",
    vp="{allow|let|permit} {a web page|my website|my web app|another origin|cors|other origins|the browser|javascript}{| to call the api| to use the port| to reach the server|}; {fix|solve|avoid} {cors|a cors error|cors errors|cors problems}",
    np="cors; {a|the} cors {error|problem|header}; --allowed-origins; --allowed-hosts; {web|allowed} origins; Access-Control-Allow-Origin",
    q="{the browser|my web page|javascript|fetch|my website} {says|gets|shows|fails with|reports} {cors error|a cors error|blocked by cors|403|forbidden origin}; what does {--allowed-origins|--allowed-hosts} do; how about cors",
)
intent(
    "portbusy",
    think=("The user's port is in use.", "Another program has it.", "--port takes another one."),
    say="Another program has that port. Take another one with `ossrun serve --port N`; `ossrun ps` shows your servers and `ossrun stop` ends one.",
    q="port {8000|8080|is|$P} {is|} {in use|busy|taken|already in use|occupied|already taken|used by something}; {it says|error:|i get|why do i get|serve says} {address already in use|port in use|bind: address already in use|port 8000 on 127.0.0.1 is in use|eaddrinuse}; {something|another program|someone} {uses|sits on|blocks|has|occupies} {the port|port 8000|my port}",
    np="{a|the} {busy|occupied|taken|used} port; address already in use; {port conflict|port clash}",
)
intent(
    "anthropic",
    think=("The user asks which APIs it speaks.", "OpenAI's, Anthropic's messages and Ollama's.", "All are on the port of ossrun serve."),
    say="`ossrun serve` answers OpenAI's API under `/v1` (chat completions, responses, completions), Anthropic's `/v1/messages` and Ollama's `/api/chat`.",
    np="{the|} {anthropic|claude|messages|ollama} api; /v1/messages; /api/chat; {which|other|all the} apis; {anthropic|claude|ollama} {compatibility|format|protocol|endpoint}",
    q="{which|what} {apis|protocols|api formats|apis} {does it speak|are supported|does it support|can i use|does the server have}; {does|can} {it|the server|ossrun} {speak|support|do|understand|emulate} {anthropic|the anthropic api|the messages api|ollama's api|the claude api|the ollama api}; is it compatible with {anthropic|claude's api|the ollama api}; only openai or {also|} {anthropic|ollama} {too|}",
    vp="{use|call} {the|} {anthropic|claude|messages|ollama} {api|format|protocol}; call /v1/messages",
)
intent(
    "ggufmodel",
    think=("The user has a model as a file or folder.", "--model takes a folder or a GGUF file.", "GGUF needs MXFP4 experts."),
    say="Give `--model` the folder or the GGUF file, for example `ossrun chat --model /data/gpt-oss-20b.gguf`. Any gpt-oss checkpoint loads, a fine-tune too.",
    vp="{use|load|open|run|start|take} {a|my|an own|my own|the} {gguf|gguf file|model file|folder|local folder|fine tune|finetune|fine-tuned model|checkpoint|local model|own model|safetensors folder|model from a usb stick|model from disk|lora merged model}{| from disk| i have| i trained|}",
    np="{a|my|the} {gguf|gguf file|fine tune|finetune|fine-tuned model|checkpoint|local model|model folder|model path}; {gguf|safetensors|fine-tunes|checkpoints|gguf support}; --model {with a path|with a folder|file.gguf}",
    q="{does|can} {it|ossrun} {read|load|support|open|use|run} {gguf|gguf files|a gguf|fine tunes|my fine-tuned model|a local folder|safetensors|a folder|my own checkpoint}; {i have|i've got|here is|i downloaded} {a gguf|a gguf file|a fine tune|the weights already|a folder with the weights|the model on a usb stick}{, can i use it|, how do i load it|, does it work|}; gguf",
)
intent(
    "othercopies",
    think=("The user has a model of another program.", "ossrun list shows those of ollama, LM Studio and llama.cpp.", "They are used in place."),
    say="`ossrun list` also shows the gpt-oss models of ollama, LM Studio and llama.cpp. They are used where they are, without another download.",
    vp="{use|reuse|share|load|import|take} {the|my} {model|models|weights|files|gpt-oss|copy} {of|from|in} {ollama|lm studio|llama.cpp|lmstudio|vllm|transformers|another program}; avoid {downloading it twice|a second download|a second copy}",
    np="{ollama's|lm studio's|llama.cpp's|my ollama} {models|model|weights|files|copy}; {models|weights|files} {of|from} {ollama|lm studio|llama.cpp|lmstudio|other programs}; {a|the} second {copy|download}",
    q="{i have|i already have|i've got|there is} {gpt-oss|20b|the model|the weights|it} {in|from} {ollama|lm studio|llama.cpp|lmstudio}{ already|}{, can ossrun use it|, can i reuse it|, must i download again|, do i need to download it again|}; {can|does} {it|ossrun} {use|find|see|read|share} {ollama's|lm studio's|my ollama|my lm studio} {models|files|weights|downloads}; {must|do} i {download|have} {it|the model} twice",
)
intent(
    "offline",
    think=("The user wants to work without a network.", "HF_HUB_OFFLINE=1 fetches nothing.", "A copied folder works with --model."),
    say="Without a network: set `HF_HUB_OFFLINE=1` (`ossrun pull --offline` only says what is here), copy the model's folder from another machine, or name a folder with `--model`. Later it runs offline.",
    vp="{use|run|install|set up|get} {it|ossrun|the model|the weights|20b} {without internet|offline|on a machine without network|air gapped|on an air-gapped machine|with no connection|behind a firewall|without a network}; copy {the|a} {model|weights|files} {to|from} {another|an offline|a different} {machine|computer|server}{| by usb| without internet|}",
    np="HF_HUB_OFFLINE; --offline; {an|the} {offline|air gapped|air-gapped} {machine|mode|server|computer|install}; {no|without} {internet|network|connection}; {airplane|offline} mode",
    q="{my|the|this} {server|machine|pc|computer} {has no|is without|is not on the|never sees the} {internet|network|network access|internet access}{, how do i get the model there|, what now|}; how do i {get|bring|move|copy} {the model|the weights|20b} {to|onto} {another machine|an offline machine|a machine without internet}; {air gapped|no internet here|offline}{, can i use it|, how|}",
)
intent(
    "mirror",
    think=("The user needs a proxy or mirror.", "HF_ENDPOINT names a mirror.", "HTTPS_PROXY is honoured."),
    say="Set `HF_ENDPOINT` for a mirror of Hugging Face, and `HTTPS_PROXY` for a proxy. `ossrun pull` takes both.",
    vp="{use|set|go through|download through|configure|pull through|get past} {a|my|the|our} {proxy|mirror|company proxy|corporate proxy|hugging face mirror|http proxy|firewall}{| for the download| for pull|}",
    np="HF_ENDPOINT; HTTPS_PROXY; {a|the|our} {proxy|mirror|corporate proxy|company proxy|hf mirror|hugging face mirror}{| server| setting|}",
    q="{i am|i'm|we are|we sit|my machine is} behind a {proxy|corporate proxy|company proxy|firewall}{, how do i download|, how do i pull|, what now|}; {hugging face|huggingface|the hub} {is blocked|cannot be reached|is unreachable|is slow}{| here| in my country| at work|}{, what can i do|, is there a mirror|}; does {it|pull} {use|honour|respect} {a proxy|the proxy|my proxy}",
)
intent(
    "verify",
    think=("The user wants to check the files.", "The command is ossrun pull --verify.", "It hashes every file again and fetches what is wrong."),
    say="Run `ossrun pull 20b --verify`. It hashes every file again and fetches what is wrong.",
    vp="{verify|check|hash|validate|repair|fix|test} {the|my|a|downloaded} {download|files|weights|model files|downloaded files|checksums|model|checkpoint|corrupt download|damaged file|hashes|broken model}{| for damage| again| for errors|}; {make sure|see if|check that|check whether} {the|my} {download|files|weights} {is|are} {complete|ok|not damaged|intact|correct|good}",
    np="--verify; {a|the} {checksum|checksums|hash|hashes|damaged file|corrupt file|corrupted download|broken download|integrity check|damaged model}",
    q="{are|is} {the|my} {files|weights|download|model|model files} {damaged|corrupt|intact|complete|ok|broken|corrupted}; {the|my} {model|download|weights} {is|are|seems|may be} {damaged|corrupt|broken|corrupted}{, what now|, how do i repair it|, can i check|}; what does --verify do; checksum error",
)
intent(
    "hfrepo",
    think=("The user wants a model of another repository.", "ossrun pull takes hf:owner/name.", "safeguard-20b is known by name."),
    say="Use `ossrun pull hf:owner/name`, for example a fine-tune of gpt-oss. `ossrun pull safeguard-20b` fetches gpt-oss-safeguard.",
    vp="{pull|download|get|fetch|use} {a|another|any|some} {fine tune|finetune|repo|repository|model|gpt-oss fine tune|variant|derivative} {from|of|on} {hugging face|huggingface|the hub|someone else|another owner|hf}; {download|get|pull} {gpt-oss-safeguard|safeguard|the safeguard model|safeguard-120b|gpt oss safeguard}; pull a {certain|specific|given} {revision|commit|version}{| of a model|}",
    np="{gpt-oss-safeguard|safeguard|safeguard-20b|the safeguard model|hf:owner/name|a hugging face repo|another repository|a revision|a fine tune on hugging face|community fine tunes}",
    q="can i {pull|download|use} {other repos|any repo|a fine tune|models of other people|community models}{| from hugging face| of gpt-oss|}; what {about|is} {safeguard|gpt-oss-safeguard}; does it {have|know|run} {safeguard|gpt-oss-safeguard}",
)
intent(
    "quant",
    think=("The user wants it smaller or in 8 bits.", "The flags are --dense q8 and --kv-cache-dtype fp8.", "They take less memory."),
    say="Use `--dense q8` for 8-bit attention weights, which is faster, and `--kv-cache-dtype fp8` for a smaller KV cache. `--compute` sets the precision.",
    vp="{use|enable|turn on|set} {8 bit weights|q8|8-bit weights|int8|fp8|an fp8 cache|8 bits|quantized attention|a smaller kv cache|a compressed kv cache|bf16|exact computation|mxfp4 compute}; {shrink|reduce|quantize|compress} the {kv cache|cache|attention weights|dense weights}; {<change>} the {precision|compute mode|kv cache type|data type|numeric precision}",
    np="--dense; --dense q8; --kv-cache-dtype; --compute; {the|} {kv cache|precision|compute mode|kv cache type|data type}; {8-bit|8 bit|q8|int8|fp8} {weights|mode|cache}; the dense flag",
    q="what does {--dense|--dense q8|--kv-cache-dtype|--compute} do; {is|are} there {8 bit weights|an 8-bit mode|a smaller cache|an fp8 cache}; {which|what} {precision|number format|compute mode} {does it use|is used|can i choose}; how big is the kv cache",
)
intent(
    "gpushare",
    think=("The user wants to bound the memory it takes.", "The flag is --gpu-memory-utilization.", "It works on the CPU too."),
    say="Use `--gpu-memory-utilization 0.5`. It takes at most that share of the free memory, on the CPU too.",
    vp="{limit|bound|cap|restrict} {how much|the amount of} {memory|vram|ram|gpu memory} {it takes|it uses|ossrun uses|it may take|}; {leave|keep|reserve} {some|half the|room in the} {memory|vram|ram|gpu memory} {free|for other programs|for my game}; use only {half|a part|80 percent} of {the|my} {memory|vram|ram|gpu memory}",
    np="--gpu-memory-utilization; {a|the} {memory limit|memory share|vram limit|cap on memory|memory fraction}; half of {my|the} {vram|memory}",
    q="{it|ossrun} {takes|grabs|uses|eats|fills} {all|the whole|all of} {my|the} {memory|vram|ram}{, can i limit that|, how do i limit it|, leave some for others|}; what does --gpu-memory-utilization do; can it {share|leave} the {gpu|memory}{| with other programs| for others|}",
)
intent(
    "severalgpus",
    think=("The user has several GPUs.", "A model that one has no room for is spread.", "--cpu-experts puts the rest on the CPU."),
    say="A model that one GPU has no room for is spread over several: `--gpu 0,1` names them. What they have no room for stays on the CPU, and `--cpu-experts N` forces it.",
    vp="{spread|split|distribute|divide|put} {the|a|one|<big>} {model|weights|layers|} {over|across|on|between} {two|several|both|all my|four|multiple} {gpus|cards|graphics cards}; {offload|put|move|keep} {experts|layers|some layers|part of the model|the rest} {to|on|onto|in} {the cpu|ram|the processor|main memory}; {use|combine} {both|two|all} {of my|my|} {gpus|cards}{| together| at once|}",
    np="--cpu-experts; {cpu|gpu} offload{|ing}; {two|several|multiple|dual|four} {gpus|cards|graphics cards}{| together|}; multi gpu; tensor parallel; experts on the cpu; hybrid {mode|inference}",
    q="{can|does} {it|ossrun} {use|run on|spread over|split over} {two|several|multiple|both|four|all my} {gpus|cards|graphics cards}; {i have|my pc has|there are} {two|four|several|2} {gpus|cards|graphics cards|rtx cards}{, can it use both|, how do i use all|, does it use them|}; what does --cpu-experts do; {my gpu|the card|my card} {is too small|has only 8 gb|has not enough vram|is small}{, can the rest go to the cpu|, can it share with the cpu|, can part of it be in ram|}",
)
intent(
    "repeatable",
    think=("The user wants the same result whatever else runs.", "The flag is --deterministic.", "The CPU always works so."),
    say="Use `--deterministic` with a `--seed`: the same seed then gives the same tokens whatever else runs. The CPU always works so.",
    vp="{be|make it|get|run it} {deterministic|bit for bit reproducible|independent of other requests|deterministic under load}; {get|have} {bitwise identical|batch invariant|deterministic} {results|answers|output|tokens}",
    np="--deterministic; {determinism|deterministic mode|batch invariance|deterministic output|bitwise reproducibility}",
    q="is {it|the output|the engine|inference} deterministic; what does --deterministic do; {do|does} {other requests|the load|batching} change {my|the} {answer|result|output|tokens}; deterministic",
)
intent(
    "printconfig",
    think=("The user wants to see the settings.", "The flag is --print-config.", "It says where each setting comes from."),
    say="Run `ossrun chat --print-config` (or `ossrun serve --print-config`). It prints every setting with where it comes from.",
    vp="{see|show|print|list|dump|check|view} {all|the|my|the current|the effective|every} {settings|setting|configuration|config|options in effect|defaults}{| and where they come from| in use|}",
    np="--print-config; {the|all|my} {effective|current|active} {settings|configuration|config|values}; {the|all} defaults",
    q="{where|why} does {this|that|a} setting come from; {what|which} settings {are in effect|does it use|are active|are set}; what does --print-config do; what are the {defaults|default values|current settings}",
)
intent(
    "serverresume",
    think=("The user asks about stored responses.", "previous_response_id goes on with one.", "--remember says how long they are kept."),
    say="The port stores responses: `previous_response_id` goes on with one. `ossrun serve --remember 24h` says how long they are kept, and `--no-remember-on-disk` keeps them in memory.",
    vp="{continue|go on with|chain} {a|an earlier|the last} {response|api conversation|response over the api}; {store|keep|delete|forget} {responses|stored responses}{| on the server| of the api|}; {<change>} how long {responses|stored responses} are kept",
    np="previous_response_id; --remember; {stored|background} {responses|response}; {the|a} {response store|conversations api|responses api state}; --no-remember-on-disk",
    q="{does|how long does} the {server|api|port} {keep|store|remember} {responses|what i sent|my requests|reasoning}; what does {--remember|previous_response_id} do; {are|is} {the responses api|responses|it} {stateful|stored}; can {the api|a response} run in the background",
)
intent(
    "vllmengine",
    think=("The user wants to start vLLM.", "The flag is --engine vllm.", "--dry-run prints the plan."),
    say="Run `ossrun serve 120b --engine vllm`. It plans and starts vLLM by the guide for your GPUs; `--dry-run` only prints the plan.",
    vp="{use|start|run|launch|plan|set up|deploy} {vllm|the vllm engine|vllm by the guide|a vllm server|vllm in docker}{| with ossrun| from ossrun| for 120b| on h100| on my b200|}; {print|get|make|generate} a {vllm|docker compose|kubernetes|k8s} {command|file|plan|manifest}; switch the engine to vllm",
    np="--engine vllm; --engine; the vllm {engine|plan|command line|recipe}; {eagle3|speculative decoding|tensor parallelism|a docker compose file|a kubernetes manifest}; --dry-run",
    q="can {ossrun|it} {start|run|drive|launch|plan} vllm; what does {--engine|--engine vllm|--dry-run|--speculative} do; {i come|coming} from vllm{, do my flags work|, what changes|}; does it {take|understand} vllm's {flags|command line|yaml files|options}",
)
