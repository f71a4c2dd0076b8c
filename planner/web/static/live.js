// A page that somebody is filling in is not replaced under their hands: it says that it is old.
document.addEventListener("htmx:beforeRequest", (event) => {
  const fields = document.querySelectorAll("main input:not([type=hidden]), main textarea");
  const isUsed = [...fields].some((each) => each.value !== each.defaultValue);
  if (event.target.id === "live" && isUsed) {
    event.preventDefault();
    document.getElementById("old").hidden = false;
  }
});
