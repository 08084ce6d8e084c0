import { shown } from './text.js'
import type { Terminal } from '../verb.js'

/** Writes text and waits for back-pressure; escapes control characters except styles. */
export const write = (terminal: Pick<Terminal, 'out' | 'signal' | 'sign'>, text: string): Promise<void> =>
  new Promise(resolve => {
    if (!text || terminal.out.write(terminal.sign?.before(shown(text)) ?? shown(text))) return resolve()
    const go = () => {
      terminal.out.off('drain', go)
      terminal.signal.removeEventListener('abort', go)
      resolve()
    }
    terminal.out.on('drain', go)
    terminal.signal.addEventListener('abort', go)
  })

/** Prints text on standard error. */
export const say = ({ err, sign }: Pick<Terminal, 'err' | 'sign'>, text: string): void => {
  const same = sign !== undefined && 'isTTY' in err && err.isTTY === true
  err.write(same ? sign.before(shown(text)) : shown(text))
}
