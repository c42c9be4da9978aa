#!/usr/bin/env python3
"""Cut schemas.json out of OpenAI's OpenAPI document: what the port writes, and every schema that reaches.

  python3 make_schemas.py openai.json > schemas.json

Descriptions go, and the kinds of output items, tools and annotations that the port never writes, so that the file stays
small and an item of a wrong kind is an error.
"""
import copy, json, sys

ROOTS = ['CreateCompletionResponse', 'CreateChatCompletionResponse', 'CreateChatCompletionStreamResponse', 'ErrorResponse', 'Model', 'ListModelsResponse', 'Response',
         'ResponseCreatedEvent', 'ResponseInProgressEvent', 'ResponseCompletedEvent', 'ResponseFailedEvent', 'ResponseIncompleteEvent',
         'ResponseOutputItemAddedEvent', 'ResponseOutputItemDoneEvent', 'ResponseContentPartAddedEvent', 'ResponseContentPartDoneEvent',
         'ResponseTextDeltaEvent', 'ResponseTextDoneEvent', 'ResponseReasoningTextDeltaEvent', 'ResponseReasoningTextDoneEvent',
         'ResponseReasoningSummaryPartAddedEvent', 'ResponseReasoningSummaryPartDoneEvent', 'ResponseReasoningSummaryTextDeltaEvent',
         'ResponseReasoningSummaryTextDoneEvent',
         'ResponseFunctionCallArgumentsDeltaEvent', 'ResponseFunctionCallArgumentsDoneEvent', 'ResponseQueuedEvent',
         'ResponseOutputTextAnnotationAddedEvent', 'ResponseWebSearchCallInProgressEvent', 'ResponseWebSearchCallSearchingEvent',
         'ResponseWebSearchCallCompletedEvent', 'ResponseCodeInterpreterCallInProgressEvent', 'ResponseCodeInterpreterCallInterpretingEvent',
         'ResponseCodeInterpreterCallCompletedEvent', 'ResponseCodeInterpreterCallCodeDeltaEvent', 'ResponseCodeInterpreterCallCodeDoneEvent',
         'ResponseMCPCallInProgressEvent', 'ResponseMCPCallArgumentsDeltaEvent', 'ResponseMCPCallArgumentsDoneEvent',
         'ResponseMCPCallCompletedEvent', 'ResponseMCPCallFailedEvent', 'ResponseMCPListToolsInProgressEvent',
         'ResponseMCPListToolsCompletedEvent', 'CompactResource', 'TokenCountsResource', 'ResponseItemList',
         'ResponseCustomToolCallInputDeltaEvent', 'ResponseCustomToolCallInputDoneEvent']
KEEP = {  # of these unions only these members
    'OutputItem': ['OutputMessage', 'FunctionToolCall', 'ReasoningItem', 'WebSearchToolCall', 'CodeInterpreterToolCall', 'MCPToolCall',
                   'MCPListTools', 'MCPApprovalRequest', 'CustomToolCall', 'CompactionBody', 'FunctionShellCall', 'LocalShellToolCall',
                   'ApplyPatchToolCall', 'ToolSearchCall'],
    'ItemField': ['Message', 'CompactionBody'],
    'ItemResource': ['InputMessageResource', 'OutputMessage', 'FunctionToolCallResource', 'FunctionToolCallOutputResource', 'ReasoningItem'],
    'Tool': ['FunctionTool', 'WebSearchTool', 'WebSearchPreviewTool', 'CodeInterpreterTool', 'MCPTool', 'CustomToolParam',
             'NamespaceToolParam', 'LocalShellToolParam', 'FunctionShellToolParam', 'ApplyPatchToolParam', 'ToolSearchToolParam'],
    'ToolChoiceParam': ['ToolChoiceOptions', 'ToolChoiceFunction', 'ToolChoiceAllowed', 'ToolChoiceCustom', 'ToolChoiceTypes', 'ToolChoiceMCP',
                        'SpecificApplyPatchParam', 'SpecificFunctionShellParam'],
    'OutputMessageContent': ['OutputTextContent'],
    'OutputContent': ['OutputTextContent', 'ReasoningTextContent'],
    'Annotation': ['UrlCitationBody'],
    'TextResponseFormatConfiguration': ['ResponseFormatText', 'TextResponseFormatJsonSchema', 'ResponseFormatJsonObject'],
}

def bare(o):
    if isinstance(o, dict):
        return {k: bare(v) for k, v in o.items() if not (k in ('description', 'title', 'example', 'discriminator') and not (isinstance(v, dict) and 'type' in v))
                and not k.startswith('x-')}
    return [bare(x) for x in o] if isinstance(o, list) else o

def refs(o):
    if isinstance(o, dict):
        if '$ref' in o: yield o['$ref'].rsplit('/', 1)[1]
        for v in o.values(): yield from refs(v)
    elif isinstance(o, list):
        for v in o: yield from refs(v)

def fields(every, name):
    """Names of a schema's members."""
    s = every[name]
    names = set(s.get('properties', {}))
    for part in s.get('allOf', []):
        names |= fields(every, part['$ref'].rsplit('/', 1)[1]) if '$ref' in part else set(part.get('properties', {}))
    return names

def main():
    every = json.load(open(sys.argv[1]))['components']['schemas']
    out, todo = {}, list(ROOTS)
    while todo:
        name = todo.pop()
        if name in out: continue
        s = bare(every[name])
        if name in KEEP:
            for union in ('oneOf', 'anyOf'):
                if union in s: s[union] = [x for x in s[union] if x.get('$ref', '').rsplit('/', 1)[-1] in KEEP[name]]
        if name == 'Response':  # instructions come back as text only; usage is null until the end
            for part in s['allOf']:
                if 'usage' in part.get('properties', {}): part['properties']['usage'] = {'anyOf': [{'$ref': '#/components/schemas/ResponseUsage'}, {'type': 'null'}]}
                if 'instructions' in part.get('properties', {}): part['properties']['instructions'] = {'anyOf': [{'type': 'string'}, {'type': 'null'}]}
        out[name] = s
        todo += refs(s)
    choice = out['CreateCompletionResponse']['properties']['choices']['items']['properties']
    lists = choice['logprobs']['anyOf'][0]['properties']  # with echo the prompt's first token has null, which the document leaves out
    for name in ('token_logprobs', 'top_logprobs'): lists[name]['items']['nullable'] = True
    chunk = copy.deepcopy(out['CreateCompletionResponse'])  # nor does it say what is null before the end of a stream
    chunk['properties']['choices']['items']['properties']['finish_reason']['nullable'] = True
    chunk['properties']['usage'] = {'anyOf': [chunk['properties']['usage'], {'type': 'null'}]}
    out['CreateCompletionStreamResponse'] = chunk
    out['CreateResponseFields'] = {'enum': sorted(fields(every, 'CreateResponse'))}
    for name in ('ModelIdsShared', 'ModelIdsResponses'): out[name] = {'type': 'string'}
    lines = (json.dumps(k) + ': ' + json.dumps(out[k], separators=(',', ':'), sort_keys=True) for k in sorted(out))
    print('{\n' + ',\n'.join(lines) + '\n}')

main()
