import { inkOn } from './ink.js'

/** The look of the chat; a sheet of this kind needs no permission of a page's policy. */
export const sheetOf = (accent: string, position: string): CSSStyleSheet => {
  const [edge = 'bottom', side = 'right'] = position.split('-')
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(`
:host { all: initial; }
.chat { color-scheme: light dark; --accent: ${accent}; --ink: ${inkOn(accent)};
  --ground: light-dark(#fff, #17181c); --text: light-dark(#1b1c1f, #ececf1); --soft: light-dark(#f1f2f5, #26282e);
  --line: light-dark(#767b87, #8b909c); --quiet: light-dark(#555a66, #aeb3be);
  position: fixed; ${edge}: 16px; ${side}: 16px; z-index: 2147483000; display: flex; gap: 12px;
  flex-direction: ${edge === 'top' ? 'column-reverse' : 'column'};
  align-items: ${side === 'left' ? 'flex-start' : 'flex-end'};
  font: 15px/1.45 system-ui, sans-serif; color: var(--text); }
.chat.framed { position: absolute; inset-inline: 16px; }
.framed .panel { width: min(380px, 100%); height: 380px; }
* { box-sizing: border-box; }
button, textarea, input { font: inherit; color: inherit; }
button { cursor: pointer; border: 1px solid transparent; border-radius: 8px; min-height: 44px; padding: 0 16px;
  background: var(--accent); color: var(--ink); }
button:disabled { opacity: .6; cursor: default; }
:focus-visible { outline: 3px solid var(--text); outline-offset: 2px; box-shadow: 0 0 0 2px var(--ground); }
.open { border-radius: 24px; min-height: 48px; box-shadow: 0 2px 12px #0004; }
.panel { display: flex; flex-direction: column; width: min(380px, calc(100vw - 32px));
  height: min(560px, calc(100dvh - 104px)); background: var(--ground); border: 1px solid var(--line);
  border-radius: 12px; overflow: hidden; box-shadow: 0 8px 32px #0005; }
.panel[hidden] { display: none; }
header { display: flex; align-items: center; gap: 8px; padding: 8px 8px 8px 16px;
  border-bottom: 1px solid var(--line); }
h2 { margin: 0; font-size: 16px; flex: 1; overflow-wrap: anywhere; }
header button, .quiet { background: transparent; color: var(--text); }
.log { flex: 1; overflow-y: auto; padding: 16px; display: flex; flex-direction: column; gap: 8px; margin: 0; }
.log p { margin: 0; padding: 8px 12px; border-radius: 12px; max-width: 85%; white-space: pre-wrap;
  overflow-wrap: anywhere; background: var(--soft); align-self: flex-start; }
.log p.visitor { align-self: flex-end; background: var(--accent); color: var(--ink); }
.log p.note { background: transparent; color: var(--quiet); padding: 0; }
form { display: flex; flex-direction: column; gap: 8px; padding: 12px; border-top: 1px solid var(--line); }
label { font-size: 13px; color: var(--quiet); }
textarea, input { width: 100%; background: var(--ground); border: 1px solid var(--line); border-radius: 8px;
  padding: 8px;
  resize: none; font-size: 16px; }
.status { min-height: 1.4em; margin: 0; font-size: 13px; color: var(--quiet); }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
@media (max-width: 480px) {
  .chat:not(.framed):has(.panel:not([hidden])) { inset: 0; gap: 0; }
  .chat:not(.framed) .panel:not([hidden]) { width: 100%; height: 100dvh; border: 0; border-radius: 0; }
  .chat:not(.framed):has(.panel:not([hidden])) .open { display: none; }
}
@media (prefers-reduced-motion: no-preference) { .log { scroll-behavior: smooth; } }
`)
  return sheet
}
