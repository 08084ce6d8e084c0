import { refuse } from '../../sdk/refusal.js'
import { refuseMethod } from './reply.js'
import type { RequestStep } from './request.js'
import { targetPath } from './routes.js'

/** Serves `GET /x/{name}/{path}`: `path` is all that follows the name; `/x/{name}` redirects to `/x/{name}/`. */
export const servePublicPage = (path: string, serve: RequestStep): RequestStep => {
  const [, name = ''] = /^\/[^/]+\/\{(\w+)\}\/\{path\}$/.exec(path) ?? []
  if (name === '') throw new Error(`expected the route of a public page such as /x/{name}/{path}, found ${path}`)
  return (ctx, next) => {
    ctx.state.publicPage = true
    const [, , first = '', ...rest] = targetPath(ctx.req.url).split('/').map(decoded)
    if (first === '' || rest.slice(0, -1).includes('')) unknown()
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      ctx.state.reply.lines.set('allow', 'HEAD, GET')
      return refuseMethod(ctx.state.reply, `this address does not take ${ctx.method}, only HEAD, GET`)
    }
    if (rest.length === 0) {
      ctx.state.reply.lines.setAll({ location: `${encodeURIComponent(first)}/`, 'content-length': 0 })
      return void ctx.state.reply.lines.write(ctx.res, 301).end()
    }
    ctx.params = { [name]: first, path: rest.join('/') }
    return serve(ctx, next)
  }
}

/** The path alone is the input: a query is the page's own. */
export const takePath: RequestStep = (ctx, next) => {
  ctx.state.input = { ...ctx.params }
  return next()
}

const unknown = (): never => refuse('not-found', 'no such path')

/** A decoded segment; refuses what names no file. */
const decoded = (segment: string): string => {
  let text: string
  try {
    text = decodeURIComponent(segment)
  } catch {
    return unknown()
  }
  return text === '.' || text === '..' || /[/\\\0]/.test(text) ? unknown() : text
}
