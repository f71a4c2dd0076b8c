// Show the newest content of the page. A page that somebody is filling in is not replaced under their hands:
// it says that it is old.
let shown = document.querySelector("main").innerHTML;
setInterval(async () => {
  if (document.hidden) return;
  const response = await fetch(location.href).catch(() => null); // the server may be stopped
  if (!response?.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const main = page.querySelector("main");
  if (main.innerHTML === shown) return;
  const fields = document.querySelectorAll("main input:not([type=hidden]), main textarea");
  if ([...fields].some((each) => each.value !== each.defaultValue)) {
    document.getElementById("old").hidden = false;
    return;
  }
  shown = main.innerHTML;
  document.querySelector("main").replaceWith(main);
}, 2_000);
