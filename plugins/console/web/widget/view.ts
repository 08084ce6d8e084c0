import type { WidgetConfig } from '../../../automations/contract.js'
import { sheetOf } from './sheet.js'

/** What a view asks its owner for. */
export interface ViewActions {
  readonly toggled: (open: boolean) => void
  readonly send: (text: string, name: string) => void
}

type Look = Pick<WidgetConfig, 'title' | 'greeting' | 'accent' | 'position' | 'requireName' | 'maxLength'>

const MOST_NAME = 80

const element = <Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  fields: Partial<HTMLElementTagNameMap[Name]> = {},
  ...children: readonly Node[]
): HTMLElementTagNameMap[Name] => {
  const made = Object.assign(document.createElement(name), fields)
  made.append(...children)
  return made
}

/** The chat as it is drawn: text only, so that nothing that is said becomes part of the page. */
export class ChatView {
  readonly #panel: HTMLElement
  readonly #log: HTMLElement
  readonly #status: HTMLElement
  readonly #words: HTMLTextAreaElement
  readonly #name: HTMLInputElement
  readonly #send: HTMLButtonElement
  readonly #button: HTMLButtonElement
  readonly #actions: ViewActions
  readonly #look: Look
  /** The answer that is being said. */
  #growing: HTMLElement | undefined

  /** @param framed Stands in the element's box, not in the corner of the page. */
  constructor(root: ShadowRoot, look: Look, actions: ViewActions, framed = false) {
    const { title, accent, position, requireName, maxLength } = look
    this.#actions = actions
    this.#look = look
    root.adoptedStyleSheets = [sheetOf(accent, position)]
    this.#log = element('div', {
      className: 'log',
      role: 'log',
      tabIndex: 0,
      ariaLabel: 'Messages',
      ariaLive: 'polite',
    })
    this.#status = element('p', { className: 'status', role: 'status' })
    this.#words = element('textarea', { id: 'words', rows: 2, maxLength, required: true })
    this.#name = element('input', { id: 'name', maxLength: MOST_NAME, autocomplete: 'name', required: requireName })
    this.#send = element('button', { type: 'submit', textContent: 'Send' })
    const close = element('button', { type: 'button', textContent: 'Close', ariaLabel: 'Close the chat' })
    this.#button = element('button', { type: 'button', className: 'open', textContent: title })
    const form = element(
      'form',
      {},
      ...(requireName ? [element('label', { htmlFor: 'name', textContent: 'Your name' }), this.#name] : []),
      element('label', { htmlFor: 'words', textContent: 'Your message' }),
      this.#words,
      this.#send,
      this.#status,
    )
    const heading = element('h2', { id: 'title', textContent: title })
    this.#panel = element('section', { className: 'panel', role: 'dialog', hidden: true, ariaLabel: title })
    this.#panel.append(element('header', {}, heading, close), this.#log, form)
    root.append(element('div', { className: framed ? 'chat framed' : 'chat' }, this.#panel, this.#button))
    this.empty()
    // In a frame it is what is looked at; it does not take the focus.
    this.#show(framed)
    this.#button.addEventListener('click', () => this.toggle())
    close.addEventListener('click', () => this.toggle(false))
    this.#panel.addEventListener('keydown', event => {
      if (event.key === 'Escape') this.toggle(false)
    })
    this.#words.addEventListener('keydown', event => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing || !matchMedia('(pointer: fine)').matches) return
      event.preventDefault()
      form.requestSubmit()
    })
    form.addEventListener('submit', event => {
      event.preventDefault()
      const text = this.#words.value.trim()
      // The key Enter submits also while the button is disabled.
      if (text && !this.#send.disabled) actions.send(text, this.#name.value.trim())
    })
  }

  get isOpen(): boolean {
    return !this.#panel.hidden
  }

  toggle(open = this.#panel.hidden): void {
    this.#show(open)
    this.#button.textContent = this.#look.title
    this.#actions.toggled(open)
    if (!open) return this.#button.focus()
    this.#end()
    ;(this.#name.required && !this.#name.value ? this.#name : this.#words).focus()
  }

  #show(open: boolean): void {
    this.#panel.hidden = !open
    this.#button.ariaExpanded = String(open)
  }

  /** While a message is on its way nothing else is sent. */
  busy(isBusy: boolean, status = ''): void {
    this.#send.disabled = isBusy
    this.#status.textContent = status
  }

  /** The text was taken. */
  clear(): void {
    this.#words.value = ''
  }

  message(from: 'visitor' | 'agent', text: string, isNews = true): void {
    if (from === 'agent') this.void()
    this.#say(from, text)
    if (from === 'agent' && isNews && !this.isOpen) this.#button.textContent = `${this.#look.title} (new answer)`
  }

  note(text: string): void {
    this.#say('note', text)
  }

  /** More of an answer. It is read aloud when it is whole. */
  delta(text: string): void {
    if (!this.#growing) {
      this.#growing = element('p', { className: 'agent', dir: 'auto', ariaHidden: 'true' })
      this.#log.append(this.#growing)
    }
    this.#growing.append(text)
    this.#end()
  }

  /** What was said of an answer is void. */
  void(): void {
    this.#growing?.remove()
    this.#growing = undefined
  }

  /** As before the first message. */
  empty(): void {
    this.void()
    this.#log.replaceChildren()
    if (this.#look.greeting) this.#say('agent', this.#look.greeting)
  }

  #say(kind: 'visitor' | 'agent' | 'note', text: string): void {
    const who = { visitor: 'You: ', agent: 'Answer: ', note: '' }[kind]
    const line = element('p', { className: kind, dir: 'auto' })
    if (who) line.append(element('span', { className: 'unseen', textContent: who }))
    line.append(text)
    this.#log.append(line)
    this.#end()
  }

  #end(): void {
    this.#log.scrollTop = this.#log.scrollHeight
  }
}
