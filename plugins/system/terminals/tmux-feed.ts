import { StringDecoder } from 'node:string_decoder'
import type { Feed, TerminalListener, TerminalSize } from './backend.js'
import { quotedForTmux, type ControlClient } from './control-client.js'
import { drawingOf, MODES, type Modes } from './drawing.js'
import { target, typing } from './tmux-commands.js'
import { paneExit, hasEnded } from './tmux-rows.js'

const DRAWN = 20_000

/** One session, followed by a control client attached to it. */
export class TmuxFeed implements Feed {
  readonly #name: string
  readonly #client: ControlClient
  readonly #listener: TerminalListener
  readonly #resized: (size: TerminalSize) => void
  readonly #decoder = new StringDecoder('utf8')
  #closed = false

  constructor(
    name: string,
    listener: TerminalListener,
    resized: (size: TerminalSize) => void,
    attach: (events: ConstructorParameters<typeof ControlClient>[1]) => ControlClient,
  ) {
    this.#name = name
    this.#listener = listener
    this.#resized = resized
    this.#client = attach({
      output: bytes => {
        const text = this.#decoder.write(bytes)
        if (text) listener.data(text)
      },
      notified: line => line.endsWith(' dead') && this.draw(() => {}),
      ended: () => this.#closed || listener.lost(),
    })
  }

  draw(drawn: (text: string) => void): void {
    const at = target(this.#name)
    const asked = ['history_size', 'pane_dead', 'pane_dead_status', 'pane_dead_signal', ...MODES]
    this.#client.run(
      [
        `display-message -p -t ${at} ${quotedForTmux(asked.map(name => `#{${name}}`).join('|'))}`,
        `capture-pane -p -e -S -${DRAWN} -t ${at}`,
        `capture-pane -p -e -a -q -t ${at}`,
      ],
      blocks => {
        if (blocks instanceof Error) return
        const [[facts = ''] = [], lines = [], other = []] = blocks
        const values = facts.split('|')
        const modes: Modes = Object.fromEntries(asked.map((name, index) => [name, Number(values[index] || 0)]))
        const height = modes.pane_height ?? lines.length
        const [text, hidden] = [lines, other].map(each => each.map(utf8))
        drawn(drawingOf({ history: text!.slice(0, -height), screen: text!.slice(-height), other: hidden!, modes }))
        if (hasEnded(values[1], values[2], values[3])) this.#listener.exit(paneExit(values[2], values[3]))
      },
    )
  }

  write(text: string): void {
    for (const command of typing(this.#name, text)) this.#client.run([command], () => {})
  }

  resize({ cols, rows }: TerminalSize): void {
    this.#client.run([`resize-window -t ${target(this.#name)} -x ${cols} -y ${rows}`], () =>
      this.#resized({ cols, rows }),
    )
  }

  pause(): void {
    this.#client.pause()
  }

  resume(): void {
    this.#client.resume()
  }

  close(): void {
    this.#closed = true
    this.#client.close()
  }
}

const utf8 = (line: string): string => Buffer.from(line, 'latin1').toString()
