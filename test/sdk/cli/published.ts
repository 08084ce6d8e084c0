import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { OpenApiDocument, Schema } from '../../../sdk/cli/calls/document.js'
import { operationsOf, type Operation } from '../../../sdk/cli/calls/operation.js'
import { groupCommands, tableOf } from '../../../sdk/cli/calls/tables.js'
import { root } from '../../support/daemon.js'

interface Answered extends OpenApiDocument {
  readonly paths: {
    readonly [path: string]: {
      readonly [method: string]: OpenApiDocument['paths'][string][string] & {
        readonly responses: {
          readonly [status: string]: {
            readonly content?: { readonly [form: string]: { readonly schema: Schema; readonly example?: unknown } }
          }
        }
      }
    }
  }
}

/** The published document. */
export const document = JSON.parse(readFileSync(join(root, '..', 'openapi', 'openapi.json'), 'utf8')) as Answered

/** Every call of the published document. */
export const publishedCalls = operationsOf(document)
/** Its groups, each with the table that the program has of it. */
export const publishedGroups = await Promise.all(
  [...new Set(publishedCalls.map(({ group }) => group))].map(async group => {
    const table = await tableOf({ root }, group)
    const calls = publishedCalls.filter(each => each.group === group)
    return { group, table, calls, commands: groupCommands(calls, table) }
  }),
)

/** The JSON that a call answers, or another form of it: its schema, and an example. */
export const answerOf = ({ call }: Operation, form = 'application/json') => {
  const [method = '', path = ''] = call.split(' ')
  return document.paths[path]![method.toLowerCase()]!.responses['200']?.content?.[form]
}

/** The forms of a schema, without references. */
export const formsOf = (schema: Schema): Schema[] => {
  const one = schema.$ref ? document.components.schemas[schema.$ref.split('/').at(-1)!]! : schema
  const forms = [...(one.oneOf ?? []), ...(one.anyOf ?? [])]
  return forms.length > 0 ? forms.flatMap(formsOf) : [one]
}
