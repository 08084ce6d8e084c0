import { useEffect, useRef } from 'preact/hooks'

/** Shows a page as it will leave, in a frame without an origin and without a network, in which no script of it runs. */
export const PreviewFrame = ({ html, label }: { html: string; label: string }) => {
  const box = useRef<HTMLIFrameElement>(null)
  useEffect(() => {
    const frame = box.current
    if (!frame) return
    const show = () => {
      const { port1, port2 } = new MessageChannel()
      // Pictures have no address before the page is shared.
      const shown = html.replaceAll('<img src="files/', '<img data-src="files/')
      const code = `export const activate = () => { document.documentElement.innerHTML = ${JSON.stringify(shown)} }`
      const start = { id: 'share', surface: { view: 'preview' }, theme: 'light', settings: {} }
      frame.contentWindow?.postMessage({ code, start }, '*', [port2])
      port1.start()
    }
    frame.addEventListener('load', show, { once: true })
    frame.src = '/console/frame.html'
    return () => frame.removeEventListener('load', show)
  }, [html])
  return <iframe ref={box} class="share-preview" title={label} sandbox="allow-scripts" />
}
