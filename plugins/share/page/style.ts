/** The style of a shared page. */
export const STYLE = [
  ':root{color-scheme:light dark;font:16px/1.6 system-ui,sans-serif}',
  'body{max-width:46rem;margin:0 auto;padding:1.5rem 1rem 4rem}',
  'article{margin:1.5rem 0;padding:.25rem 1rem;border-inline-start:3px solid #8886}',
  'article.person{border-color:#36c}',
  '.who{font-weight:600;margin:.5rem 0 0}.who time,.meta{font-weight:400;opacity:.7;font-size:.85rem}',
  'pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85rem}',
  'pre{background:#8881;padding:.6rem .8rem;border-radius:.4rem}',
  'p,li,td,th,h1,h2,h3,h4,h5,h6{overflow-wrap:anywhere}',
  'table{border-collapse:collapse;display:block;overflow-x:auto}',
  'td,th{border:1px solid #8886;padding:.2rem .5rem;text-align:start}',
  'img{max-width:100%;height:auto}details{margin:.5rem 0}summary{cursor:pointer}',
].join('\n')
