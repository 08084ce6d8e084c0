import type { WidgetConfig } from '../../../automations/contract.js'
import { Chat, type PageSettings } from './chat.js'

const NAME = '/webchat/widget.js'

/** Draws the chat that a script tag asks for. */
const draw = async ({ src, dataset: { automation = '' } }: HTMLScriptElement): Promise<void> => {
  const base = src.split('?', 1)[0]!.replace(NAME, '')
  const response = await fetch(`${base}/webchat/${encodeURIComponent(automation)}/config`, { credentials: 'omit' })
  if (!response.ok) throw new Error(`the sandbox answered ${response.status}`)
  const config = (await response.json()) as WidgetConfig
  const host = document.createElement('div')
  document.body.append(host)
  const page = () => (globalThis as { sandboxChat?: PageSettings }).sandboxChat ?? {}
  new Chat(host.attachShadow({ mode: 'closed' }), base, config, page)
}

const script = document.currentScript
if (script instanceof HTMLScriptElement) {
  const begin = () =>
    void draw(script).catch((error: unknown) => console.warn('The chat cannot be shown on this page:', error))
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', begin, { once: true })
  else begin()
}
