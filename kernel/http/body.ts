import type { IncomingMessage } from 'node:http'
import { refuse } from '../../sdk/refusal.js'
import type { BodyForm, CallAccess } from '../manifest.js'
import { readForm } from './forms.js'
import { inputHeaders } from './any-origin.js'
import { readFields, readJsonBody, readParams, readQuery } from './input.js'
import type { RequestStep } from './request.js'

const JSON_LIMIT = 1 << 20
/** Of a call that takes bytes, whose limit is theirs. */
const JSON_BESIDE_BYTES = 24 << 20

/** What bytes are received as names a file of the daemon's, so no JSON says it. */
const readJson = async (req: IncomingMessage, limit: number, forms: readonly BodyForm[]): Promise<object> => {
  if (!forms.includes('bytes')) return readJsonBody(req, limit)
  const given = await readJsonBody(req, Math.min(limit, JSON_BESIDE_BYTES))
  return 'bytes' in given ? refuse('invalid', 'bytes: expected it as a body of its own, found it in JSON') : given
}

/** Reads the query, JSON body or form into the call's input; deletes the files of a form after the answer. */
export const readInput =
  (call: string, access: CallAccess, uploads: string): RequestStep =>
  async (ctx, next) => {
    const { body = JSON_LIMIT, forms = [] } = access
    const { contract } = ctx.state
    const form = forms.length > 0 ? await readForm(ctx, forms, body, uploads) : undefined
    try {
      const given = call.startsWith('GET ')
        ? readQuery(ctx.querystring, call, contract.schema())
        : form
          ? readFields(form.fields, 'body', call, contract.schema())
          : await readJson(ctx.req, body, forms)
      const params = readParams(ctx.params, call, contract.schema)
      ctx.state.input = Object.assign(given, params, 'open' in access && inputHeaders(ctx, access))
      await next()
    } finally {
      if (form) await form.removeFiles()
    }
  }
