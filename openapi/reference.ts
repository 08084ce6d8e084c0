import { REFERENCE_STYLE } from './reference-style.js'

/** A page the daemon serves itself: its parts, and what a browser lets it load. */
export interface OwnPage {
  readonly html: string
  readonly css: string
  readonly js: string
  /** Its `content-security-policy`. */
  readonly policy: string
}

/** The part of a JSON Schema that the page shows. */
interface Schema {
  $ref?: string
  type?: string | string[]
  description?: string
  enum?: unknown[]
  const?: unknown
  oneOf?: Schema[]
  items?: Schema
  properties?: { [name: string]: Schema }
  required?: string[]
  additionalProperties?: Schema | boolean
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  pattern?: string
}

interface Media {
  schema?: Schema
  example?: unknown
  examples?: { [name: string]: object }
}

interface Answer {
  $ref?: string
  description?: string
  content?: { [type: string]: Media }
}

interface Operation {
  tags?: string[]
  operationId?: string
  summary?: string
  description?: string
  deprecated?: boolean
  parameters?: {
    name?: string
    in?: string
    description?: string
    required?: boolean
    schema?: Schema
    example?: unknown
  }[]
  requestBody?: { description?: string; required?: boolean; content?: { [type: string]: Media } }
  responses?: { [status: string]: Answer }
  'x-floor'?: string
  'x-token'?: string[]
}

/** The part of an OpenAPI document that the page shows. */
export interface ReferenceDocument {
  info: { title: string; version: string; description?: string }
  tags?: { name: string; description?: string }[]
  /** Per path its operations by lower-case method. */
  paths?: { [path: string]: object }
  components?: { schemas?: { [name: string]: Schema }; responses?: { [name: string]: Answer } }
}

const POLICY = "default-src 'none'; style-src 'self'; script-src 'self'; frame-ancestors 'none'"

const METHODS = ['get', 'put', 'post', 'delete', 'patch']

/** A page that shows the document. It works without scripts and escapes all text of the document. */
export const referencePage = (document: ReferenceDocument): OwnPage => ({
  html: new Page(document).html(),
  css: REFERENCE_STYLE,
  js: JS,
  policy: POLICY,
})

const escape = (text: unknown): string => String(text).replace(/[&<>"']/g, letter => `&#${letter.charCodeAt(0)};`)

/** Paragraphs of text, with backticks rendered as code. */
const prose = (text = ''): string =>
  text
    .split(/\n{2,}/)
    .filter(Boolean)
    .map(part => `<p>${inline(part)}</p>`)
    .join('')

const inline = (text: string): string => escape(text).replace(/`([^`]+)`/g, '<code>$1</code>')
const literal = (value: unknown): string => `<span class="literal">${escape(JSON.stringify(value))}</span>`
const lastPart = (ref: string): string => ref.slice(ref.lastIndexOf('/') + 1)
const fieldList = (fields: readonly string[]): string => `<dl class="fields">${fields.join('')}</dl>`
const details = (summary: string, content: string): string =>
  `<details><summary>${summary}</summary>${content}</details>`

class Page {
  readonly #document: ReferenceDocument
  readonly #schemas: { [name: string]: Schema }

  constructor(document: ReferenceDocument) {
    this.#document = document
    this.#schemas = document.components?.schemas ?? {}
  }

  html(): string {
    const { info, tags = [], paths = {}, components = {} } = this.#document
    const calls = Object.entries(paths as { [path: string]: { [method: string]: Operation } }).flatMap(([path, item]) =>
      METHODS.flatMap(method => (item[method] ? [{ path, method, call: item[method] }] : [])),
    )
    const groups = tags.map(tag => ({ ...tag, calls: calls.filter(({ call }) => call.tags?.includes(tag.name)) }))
    const links = groups.map(
      group =>
        `<section data-group><h2>${escape(group.name)}</h2><ul>${group.calls
          .map(
            ({ path, method, call }) =>
              `<li data-find="${this.#words(path, method, call)}">`
              + `<a href="#${escape(call.operationId)}">${verb(method)}${breakable(path)}</a></li>`,
          )
          .join('')}</ul></section>`,
    )
    const articles = groups.map(
      group =>
        `<section data-group><h2>${escape(group.name)}</h2>${prose(group.description)}${group.calls
          .map(({ path, method, call }) => this.#article(path, method, call))
          .join('')}</section>`,
    )
    const types = Object.entries(this.#schemas)
      .filter(([, schema]) => this.#shaped(schema))
      .map(
        ([name, schema]) =>
          `<article id="type-${escape(name)}"><h3><code>${escape(name)}</code></h3>`
          + `${prose(schema.description)}${this.#block(schema)}</article>`,
      )
    const refusals = Object.entries(components.responses ?? {}).map(
      ([name, { description }]) =>
        `<dt id="refusal-${escape(name)}">${escape(spaced(name))}</dt><dd>${inline(description ?? '')}</dd>`,
    )
    const more = '<li><a href="#types">Types</a></li><li><a href="#refusals">Refusals</a></li>'
    const about = `Contract ${escape(info.version)} · ${calls.length} calls · <a href="/openapi.json">openapi.json</a>`
    return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(info.title)} – reference</title>
<link rel="stylesheet" href="/reference/style.css"><script src="/reference/script.js" defer></script></head>
<body><nav aria-label="Calls"><p class="title"><a href="#top">${escape(info.title)}</a></p>
<input id="filter" type="search" placeholder="Filter calls" aria-label="Filter calls" autocomplete="off" hidden>
${links.join('\n')}<section><h2>More</h2><ul>${more}</ul></section></nav>
<main id="top"><h1>${escape(info.title)}</h1><p class="quiet">${about}</p>
${prose(info.description)}<p id="none" hidden>No call matches.</p>
${articles.join('\n')}
<section id="types"><h2>Types</h2>${types.join('\n')}</section>
<section id="refusals"><h2>Refusals</h2>${fieldList(refusals)}</section></main></body></html>
`
  }

  #words(path: string, method: string, { operationId, summary }: Operation): string {
    return escape(`${method} ${path} ${operationId} ${summary}`.toLowerCase())
  }

  #article(path: string, method: string, call: Operation): string {
    const id = escape(call.operationId)
    const body = Object.values(call.requestBody?.content ?? {})[0]?.schema
    const parameters = (call.parameters ?? []).map(({ name, in: place, required, schema, description }) =>
      this.#field(name ?? '', schema ?? {}, required === true, description, place),
    )
    const deprecated = call.deprecated ? ' <strong>Deprecated.</strong>' : ''
    const input = body
      ? `<h4>Body ${this.#name(body)}</h4>${prose(call.requestBody?.description)}${this.#block(body)}`
      : ''
    return `<article id="${id}" data-find="${this.#words(path, method, call)}">
<h3>${verb(method)}<code>${breakable(path)}</code> <a class="quiet" href="#${id}">${id}</a></h3>
<p class="summary">${inline(call.summary ?? '')}${deprecated}</p>${prose(call.description)}
<p class="who">${who(call)}</p>${parameters.length ? `<h4>Parameters</h4>${fieldList(parameters)}` : ''}
${input}${this.#answer(call)}${exampleOf(path, method, call)}</article>`
  }

  #answer({ responses = {} }: Operation): string {
    const { 200: good, ...others } = responses
    const [type, media] = Object.entries(good?.content ?? {})[0] ?? []
    const shown = media?.schema && type?.match(/json|event-stream/) ? this.#block(media.schema) : ''
    const refusals = Object.entries(others).flatMap(([status, { $ref, description }]) => {
      const label = status === 'default' ? 'others' : escape(status)
      return $ref ? [{ link: `<a href="#refusal-${escape(lastPart($ref))}">${label}</a>`, description }] : []
    })
    const own = refusals
      .filter(({ description }) => description)
      .map(({ link, description }) => `<dt>${link}</dt><dd>${inline(description!)}</dd>`)
    const general = refusals.filter(({ description }) => !description).map(({ link }) => link)
    const named = media?.schema ? this.#name(media.schema) : ''
    const format = type && type !== 'application/json' ? `<code>${escape(type)}</code>` : ''
    return (
      `<h4>Answer ${named} ${format}</h4>\n<p>${inline(good?.description ?? '')}</p>${shown}`
      + `<h4>Refusals</h4>${own.length ? fieldList(own) : ''}`
      + `<p class="quiet">As every call of its kind: ${general.join(' ')}</p>`
    )
  }

  /** The link of a named type with its own section, for a heading. */
  #name(schema: Schema): string {
    return schema.$ref && this.#shaped(schema) ? this.#type(schema) : ''
  }

  /** Whether a type gets its own section: one with fields or forms, rather than a scalar with limits. */
  #shaped(schema: Schema | undefined): boolean {
    if (schema?.$ref) return this.#shaped(this.#schemas[lastPart(schema.$ref)])
    return schema?.properties !== undefined || schema?.oneOf?.some(option => option.$ref !== undefined) === true
  }

  /** The details of a type: its fields, or each of its forms. */
  #block(schema: Schema): string {
    const { properties, required = [], oneOf, $ref } = schema
    if ($ref) return this.#block(this.#schemas[lastPart($ref)] ?? {})
    if (oneOf && this.#shaped(schema)) {
      return oneOf
        .map(option =>
          option.$ref && this.#shaped(option)
            ? details(`${escape(lastPart(option.$ref))}${this.#kind(option)}`, this.#block(option))
            : `<p>${this.#type(option)}</p>`,
        )
        .join('')
    }
    if (!properties) return `<p>${this.#type(schema)}</p>`
    const fields = Object.entries(properties).map(([name, field]) =>
      this.#field(name, field, required.includes(name), field.description),
    )
    return fields.length ? fieldList(fields) : '<p>An empty object.</p>'
  }

  #kind({ $ref = '' }: Schema): string {
    const kind = Object.entries(this.#schemas[lastPart($ref)]?.properties ?? {}).find(
      ([, field]) => typeof field.const === 'string',
    )
    return kind ? ` <span class="quiet">${escape(kind[0])} ${literal(kind[1].const)}</span>` : ''
  }

  #field(name: string, schema: Schema, required: boolean, description = '', place?: string): string {
    const inner = schema.properties ? schema : schema.items?.properties ? schema.items : undefined
    const mark = required ? '' : '<span class="quiet">?</span>'
    const where = place ? ` <span class="quiet">${escape(place)}</span>` : ''
    return (
      `<dt><code>${escape(name)}</code>${mark} <span class="type">${this.#type(schema)}</span>${where}</dt>`
      + `<dd>${inline(description)}${inner ? this.#block(inner) : ''}</dd>`
    )
  }

  #type(schema: Schema): string {
    const { $ref, oneOf, items, additionalProperties: rest } = schema
    if ($ref) {
      const name = lastPart($ref)
      return this.#shaped(schema)
        ? `<a href="#type-${escape(name)}">${escape(name)}</a>`
        : this.#type(this.#schemas[name] ?? {})
    }
    if (schema.const !== undefined) return literal(schema.const)
    if (schema.enum) return schema.enum.map(literal).join(' | ')
    if (oneOf) return oneOf.map(option => this.#type(option)).join(' | ')
    if (items) return `list of ${this.#type(items)}${span(schema.minItems, schema.maxItems, 'items')}`
    if (typeof rest === 'object' && !schema.properties) return `object of ${this.#type(rest)} by name`
    const limits = span(schema.minLength, schema.maxLength, 'characters') + span(schema.minimum, schema.maximum)
    return (
      escape([schema.type ?? 'any value'].flat().join(' | '))
      + limits
      + (schema.pattern === undefined ? '' : `, <code>${escape(schema.pattern)}</code>`)
    )
  }
}

/** An example of a call: the request line, its body, and the answer. */
const exampleOf = (
  path: string,
  method: string,
  { parameters = [], requestBody, responses = {} }: Operation,
): string => {
  const given = parameters.flatMap(({ name = '', in: place, example }) =>
    example === undefined ? [] : [{ name, place, value: encodeURIComponent(String(example)) }],
  )
  const at = given
    .filter(({ place }) => place === 'path')
    .reduce((address, { name, value }) => address.replace(`{${name}}`, value), path)
  const query = given
    .filter(({ place }) => place === 'query')
    .map(({ name, value }) => `${name}=${value}`)
    .join('&')
  const [answer] = Object.values(responses[200]?.content ?? {})
  const answers = answer?.examples
    ? Object.values(answer.examples).map(shown => (shown as { value?: unknown }).value)
    : [answer?.example]
  const shown = [requestBody?.content?.['application/json']?.example, ...answers]
    .filter(value => value !== undefined)
    .map(value => (typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)))
  const request = `${method.toUpperCase()} ${at}${query && `?${query}`}`
  return shown.length === 0 ? '' : details('Example', `<pre>${escape([request, ...shown].join('\n\n'))}</pre>`)
}

const span = (least?: number, most?: number, unit = ''): string => {
  if (least === undefined && most === undefined) return ''
  if (least === 1 && most === undefined && unit) return ', not empty'
  const range = least === undefined ? `up to ${most}` : most === undefined ? `from ${least}` : `${least} to ${most}`
  return `, ${range}${unit && ` ${unit}`}`
}

const verb = (method: string): string => `<span class="verb ${escape(method)}">${escape(method.toUpperCase())}</span> `

/** A path that may wrap after a slash. */
const breakable = (path: string): string => escape(path).replaceAll('/', '/<wbr>')

const spaced = (name: string): string => name.replace(/(?<=[a-z])[A-Z]/g, letter => ` ${letter.toLowerCase()}`)

const who = ({ 'x-floor': floor = 'owner', 'x-token': tokens = [] }: Operation): string =>
  floor === 'open'
    ? 'Anyone: needs no general credential.'
    : `A person who is ${escape(floor)}${floor === 'owner' ? '' : ' or more'}; ${
        tokens.length ? `control tokens of scope ${tokens.map(escape).join(', ')}.` : 'no control token.'
      }`

const JS = `const filter = document.getElementById('filter')
filter.hidden = false
filter.addEventListener('input', () => {
  const words = filter.value.toLowerCase().split(/\\s+/).filter(Boolean)
  for (const item of document.querySelectorAll('[data-find]'))
    item.hidden = !words.every(word => item.dataset.find.includes(word))
  for (const group of document.querySelectorAll('[data-group]'))
    group.hidden = !group.querySelector('[data-find]:not([hidden])')
  document.getElementById('none').hidden = document.querySelector('main [data-find]:not([hidden])') !== null
})
addEventListener('keydown', event => {
  if (event.key === '/' && document.activeElement !== filter) { event.preventDefault(); filter.focus() }
})
`
