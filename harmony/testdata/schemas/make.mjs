// Writes zod.jsonl: tools' parameters as Zod makes them, a line each, by its own JSON Schema and by
// zod-to-json-schema, which servers with Zod 3 use.
//
// npm install zod@4.6.7 zod3@npm:zod@3.25.76 zod-to-json-schema@3.25.2; node make.mjs > zod.jsonl
import { readFileSync } from "node:fs"
import { z } from "zod"
import { z as z3 } from "zod3"
import { zodToJsonSchema } from "zod-to-json-schema"

const version = name => JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version

const make = z => {
  const address = z.object({
    street: z.string().describe("with its number"),
    floor: z.number().int().nullable().describe("null: the ground"),
  }).describe("where somebody lives")
  const shape = z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("circle"), radius: z.number().describe("in metres") }),
    z.object({ kind: z.literal("square"), side: z.number().optional() }).describe("four corners"),
  ])
  return {
    person: z.object({
      home: address, work: address.optional(), third: address.nullable().default(null),
      tags: z.array(z.enum(["a", "b"])).describe("what it is"),
      mode: z.enum(["slow", "fast"]).nullable(),
      either: z.union([z.string(), z.number()]).describe("a name or a number"),
    }),
    shapes: z.object({
      shape, more: z.array(shape), maybe: shape.nullable(),
      named: z.record(z.string(), address), counts: z.record(z.string(), z.number()),
      pair: z.tuple([z.string(), z.number()]), fixed: z.literal(4), yes: z.literal(true),
      both: z.intersection(z.object({ left: z.string().describe("one half") }),
        z.object({ right: z.string().describe("the other half") })),
      list: z.array(z.union([z.string(), z.null()])),
    }),
  }
}

const tree = z.object({
  label: z.string().describe("shown on the branch"),
  get children() { return z.array(tree).describe("what grows on it") },
})
const user = z.object({
  email: z.string().describe("to be reached"),
  get posts() { return z.array(post) },
})
const post = z.object({
  title: z.string().describe("above the text"),
  get author() { return user.nullable() },
})
const named = z.object({ city: z.string().describe("of the map") }).meta({ id: "Place", title: "Place" })
const lines = []
const add = (by, name, schema) => lines.push(JSON.stringify({ by, name, schema }))

const own = `zod ${version("zod")}`
for (const [name, s] of Object.entries({ ...make(z), tree, users: user,
  places: z.object({ from: named, to: named.optional().describe("the end"), via: z.array(named) }) })) {
  add(own, name, z.toJSONSchema(s))
  add(own, name + " reused", z.toJSONSchema(s, { reused: "ref", io: "input" }))
  add(own, name + " draft-7", z.toJSONSchema(s, { target: "draft-7" }))
}
const older = `zod-to-json-schema ${version("zod-to-json-schema")}, zod ${version("zod3")}`
const tree3 = z3.object({ label: z3.string().describe("shown on the branch"),
  children: z3.lazy(() => tree3.array()).describe("what grows on it") })
for (const [name, s] of Object.entries({ ...make(z3), tree: tree3 })) {
  add(older, name, zodToJsonSchema(s))
  add(older, name + " named", zodToJsonSchema(s, name))
  add(older, name + " openApi3", zodToJsonSchema(s, { target: "openApi3" }))
}
console.log(lines.join("\n"))
