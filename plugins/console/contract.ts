import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'

/** The page that people work in; it holds no data of the sandbox. */
export interface ConsolePage {
  'content-type': 'text/html; charset=utf-8'
}
/** A script, a style sheet or a picture of the console, or the document in which pages of extensions run. */
export interface ConsoleAsset {
  'content-type':
    | 'text/javascript; charset=utf-8'
    | 'text/css; charset=utf-8'
    | 'image/svg+xml; charset=utf-8'
    | 'text/html; charset=utf-8'
}

export interface ConsoleCalls {
  /**
   * Open the page that people work in.
   *
   * Links to sign in and invitations end here too: their code is in the fragment, which is never sent. Everything the
   * page shows it asks for with the session of the person who signed in. It is answered before the start is done.
   *
   * - 429: more than 600 requests a minute from one address
   */
  'GET /'(): ConsolePage

  /**
   * Give a script or style of the console, as it was built.
   *
   * Names contain a hash of the content, so that an answer never goes out of date, but for `service-worker.js`, which
   * shows notifications. It is compressed with Brotli or gzip where `accept-encoding` allows that. `frame.html` is the
   * document in which the pages of extensions run, without an
   * origin and without a network.
   *
   * - 404: no such file
   * - 429: more than 600 requests a minute from one address
   */
  'GET /console/{file}'(input: { file: string & tags.Pattern<'^[A-Za-z0-9._-]{1,120}$'> }): ConsoleAsset
}

export const consoleContract: Contract<ConsoleCalls> = {
  schema: () => typia.json.application<ConsoleCalls>(),
  request: typia.misc.createValidatePrune<Requests<ConsoleCalls>>(),
  reply: () => typia.createValidate<Replies<ConsoleCalls>>(),
}
