import { readFile } from 'node:fs/promises'
import t from 'tap'
import { referencePage } from '../openapi/reference.js'
import type { ReferenceDocument } from '../openapi/reference.js'
import { openapi } from '../openapi/document.js'

const document = JSON.parse(await readFile('openapi/openapi.json', 'utf8')) as ReferenceDocument

t.test('every call of the document has its place on the page and a link to it', t => {
  const { html } = referencePage(document)
  for (const [path, item] of Object.entries(document.paths!)) {
    for (const { operationId, summary } of Object.values(item) as { operationId: string; summary: string }[]) {
      t.ok(html.includes(`<article id="${operationId}"`), `${operationId} of ${path}`)
      t.ok(html.includes(`href="#${operationId}"`), `${operationId} is linked`)
      t.ok(summary)
    }
  }
  t.end()
})

t.test('a call shows one use of it: the request with its values, the body, and each answer', t => {
  const { html } = referencePage(document)
  t.ok(html.includes('<pre>DELETE /agents/cart-total/queue/m-tax\n\n{'), 'values of the path')
  t.ok(html.includes('<pre>GET /agents/archived?limit=20\n\n{'), 'values of the query')
  t.match(
    html,
    /<pre>POST \/agent\/reply\n\n\{\n {2}&#34;kind&#34;: &#34;question&#34;[^<]*\{\n {2}&#34;ok&#34;: true/,
    'the body and the answer',
  )
  t.match(
    html,
    /<pre>POST \/agent\/attach\n[^<]*&#34;event&#34;: &#34;message&#34;[^<]*&#34;event&#34;: &#34;done&#34;/,
    'the events of a stream',
  )
  t.end()
})

t.test('every link within the page leads somewhere, and nothing is loaded from elsewhere', t => {
  const { html, css, js } = referencePage(document)
  const ids = new Set([...html.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id))
  t.same(
    [...html.matchAll(/href="#([^"]*)"/g)].map(([, id]) => id).filter(id => !ids.has(id)),
    [],
  )
  t.same([...html.matchAll(/(?:src|href)="([^#"][^"]*)"/g)].map(([, to]) => to).toSorted(), [
    '/openapi.json',
    '/reference/script.js',
    '/reference/style.css',
  ])
  t.notMatch(html, /<style|<script[^>]*>[^<]|\son\w+=|\sstyle=/, 'nothing inline, which the policy would block')
  t.notMatch(css + js, /https?:|url\(|@import|innerHTML|eval/)
  t.end()
})

t.test('what a document says is shown as text, never as markup', t => {
  const evil = '"><script>alert(1)</script>\'&`<img src=x>`'
  const { html } = referencePage({
    info: { title: evil, version: evil, description: evil },
    tags: [{ name: evil, description: evil }],
    paths: {
      [`/${evil}`]: {
        get: {
          tags: [evil],
          operationId: evil,
          summary: evil,
          description: evil,
          'x-floor': evil,
          'x-token': [evil],
          parameters: [{ name: evil, in: evil, description: evil, schema: { type: evil, pattern: evil } }],
          requestBody: {
            description: evil,
            content: { [evil]: { schema: { properties: { [evil]: { const: evil } } } } },
          },
          responses: {
            200: { description: evil, content: { [`json${evil}`]: { schema: { $ref: `#/${evil}` } } } },
            [evil]: { $ref: evil },
          },
        },
      },
    },
    components: {
      schemas: { [evil]: { oneOf: [{ $ref: evil }, { enum: [evil] }], description: evil } },
      responses: { [evil]: { description: evil } },
    },
  })
  t.notMatch(html, /<script>|<img/)
  t.equal([...html.matchAll(/<script/g)].length, 1)
  t.end()
})

t.test('a page is made of a document without groups, and of the document as built', t => {
  t.match(referencePage({ info: { title: 'Nothing', version: '1' } }).html, /0 calls/)
  t.match(referencePage(openapi([])).html, /3 calls/)
  t.end()
})
