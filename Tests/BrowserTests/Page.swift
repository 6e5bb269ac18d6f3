/// JavaScript expressions about the elements of a page.
enum Page {
    /// Returns the expression of an element's text.
    static func text(_ id: String) -> String { "document.getElementById('\(id)').textContent" }

    /// Returns the expression of whether an element is visible.
    static func isShown(_ id: String) -> String { "document.getElementById('\(id)').checkVisibility()" }
}
