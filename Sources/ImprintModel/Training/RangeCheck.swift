internal import ImprintCore
internal import ImprintImages

/// The check whether a setting, such as a hyperparameter, is in its range.
package struct RangeCheck {
    /// The name of the setting.
    package let name: String
    /// The value, as text.
    package let found: String
    /// The range, as text.
    package let expected: String
    /// Whether the value is in the range.
    private let isInRange: Bool

    /// Creates the check of a value with a rule; `expected` describes the rule.
    package init(_ name: String, _ value: some Any, _ isInRange: Bool, _ expected: String) {
        self.name = name
        found = messageText(value)
        self.expected = expected
        self.isInRange = isInRange
    }

    /// Creates the check of a value with a closed range.
    package init<Value: Comparable>(_ name: String, _ value: Value, in range: ClosedRange<Value>) {
        self.init(
            name, value, range.contains(value), "\(messageText(range.lowerBound)) to \(messageText(range.upperBound))")
    }

    /// Returns the check that a number is at least 0 and finite; nil is valid.
    package static func nonNegative(_ name: String, _ value: Float?) -> Self {
        let value = value ?? 0
        return Self(name, value, value >= 0 && value.isFinite, "at least 0 and finite")
    }

    /// Returns the check that a number is more than 0 and finite; nil is valid.
    package static func positive(_ name: String, _ value: Float?) -> Self {
        let value = value ?? 1
        return Self(name, value, value > 0 && value.isFinite, "more than 0 and finite")
    }

    /// The check of the validation set's size.
    init(_ validation: ValidationRule) {
        let fraction: Double? = if case .fraction(let fraction) = validation { fraction } else { nil }
        self.init("validation", fraction ?? 0, validation.isInRange, "a fraction of at least 0 and less than 1")
    }

    /// Returns the first check whose value is out of range; nil if all are in range.
    package static func firstFailure(of checks: [Self]) -> Self? { checks.first { !$0.isInRange } }
}
