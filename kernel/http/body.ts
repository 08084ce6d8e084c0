import type { CallAccess } from '../manifest.js'
import { readForm } from './forms.js'
import { readFields, readJsonBody, readQuery } from './input.js'
import type { RequestStep } from './request.js'

const JSON_LIMIT = 1 << 20

/** Reads the query, JSON body or form into the call's input; deletes the files of a form after the answer. */
export const readInput =
  (call: string, { body = JSON_LIMIT, forms = [] }: CallAccess, uploads: string): RequestStep =>
  async (ctx, next) => {
    const { contract } = ctx.state
    const form = forms.length > 0 ? await readForm(ctx, forms, body, uploads) : undefined
    try {
      const given = call.startsWith('GET ')
        ? readQuery(ctx.querystring, call, contract.schema())
        : form
          ? readFields(form.fields, 'body', call, contract.schema())
          : await readJsonBody(ctx.req, body)
      ctx.state.input = { ...given, ...ctx.params }
      await next()
    } finally {
      await form?.removeFiles()
    }
  }
