// Runs in the frame of an extension's page, before its code: the only script that the frame's policy names.
import { activatePage, type PageStart } from '../../../../sdk/page.js'
import type { UiModule, UiTheme } from '../../../../sdk/ui-host.js'

interface Beginning {
  readonly code: string
  readonly start: PageStart
}

// No policy that browsers know has a word for these connections, which would leave the frame.
for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'RTCDataChannel'])
  Reflect.deleteProperty(globalThis, name)

const show = (theme: UiTheme): void => {
  document.documentElement.style.colorScheme = theme
}

const begin = ({ data, ports: [port], source }: MessageEvent<Beginning>): void => {
  if (source !== parent || !port) return
  removeEventListener('message', begin)
  const { code, start } = data
  show(start.theme)
  port.addEventListener('message', ({ data: { kind, name, value } }: MessageEvent) => {
    if (kind === 'event' && name === 'theme') show(value as UiTheme)
  })
  const address = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }))
  void activatePage(port, start, () => import(address) as Promise<Partial<UiModule>>)
}

addEventListener('message', begin)
