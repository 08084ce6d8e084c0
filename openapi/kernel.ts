import type { PublishedGroup } from './group.js'

/** The tag of every address that asks for no general credential. */
export const OPEN_TAG = { name: 'Open routes', description: 'Every address that asks for no general credential.' }

const health = {
  type: 'object',
  properties: {
    ok: { type: 'boolean', const: true },
    sandboxId: { type: 'string', description: "Only when `Host` is one of the sandbox's own." },
    ready: { type: 'boolean', description: "Whether the start is done; only when `Host` is one of the sandbox's own." },
  },
  required: ['ok'],
  description: 'The sign of a live sandbox.',
}

const page = (description: string) => ({
  type: 'object',
  properties: { 'content-type': { type: 'string', const: 'text/html; charset=utf-8' }, data: { type: 'string' } },
  description,
})

/** The kernel's own routes, as a group. */
export const kernelGroup: PublishedGroup = {
  manifest: {
    name: 'kernel',
    label: OPEN_TAG.name,
    summary: OPEN_TAG.description,
    routes: {
      'GET /health': { id: 'open.health', open: true, early: true },
      'GET /openapi.json': { id: 'open.document', open: true, early: true, etag: true },
      'GET /reference': { id: 'open.reference', open: true, early: true },
    },
  },
  contract: {
    examples: () => ({
      'GET /health': { output: { ok: true, sandboxId: 'ba0e906ad88c2b394e31cba79d18094e', ready: true } },
      'GET /openapi.json': { output: { openapi: '3.1.0', info: { title: 'Sandbox daemon', version: '1' }, paths: {} } },
      'GET /reference': {
        output: '<!doctype html>\n<html lang="en"><head><title>Sandbox daemon – reference</title></head></html>',
      },
    }),
    schema: () => ({
      components: {
        schemas: {
          Health: health,
        },
      },
      functions: [
        {
          name: 'GET /health',
          description:
            'Tell a live sandbox from a dead port.\n\nChecks nothing and is answered before the start is done.',
          parameters: [],
          output: { schema: { $ref: '#/components/schemas/Health' } },
        },
        {
          name: 'GET /openapi.json',
          description:
            'Give this document.\n\n'
            + 'It is generated from the types the sandbox checks requests with, and holds exactly the calls it serves.',
          parameters: [],
          output: { schema: { type: 'object', description: 'An OpenAPI 3.1 document.' } },
        },
        {
          name: 'GET /reference',
          description: 'Read this document as a page.',
          parameters: [],
          output: { schema: page('The reference, readable in any browser.') },
        },
      ],
    }),
  },
}
