//! Medians: the ordinary median, and the middle value of items without a mean.

/// Median. For an even number of values, the mean of the middle two. `None` without values.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len() % 2 == 1 {
        upper
    } else {
        (sorted[sorted.len() / 2 - 1] + upper) / 2.0
    })
}

/// Middle item by `key`, the greater of two. For counts, which have no halves, and for items with further
/// data. `None` without items.
pub fn middle_by<T>(values: impl IntoIterator<Item = T>, key: impl Fn(&T) -> f64) -> Option<T> {
    let mut sorted: Vec<T> = values.into_iter().collect();
    sorted.sort_by(|one, other| key(one).total_cmp(&key(other)));
    let place = sorted.len() / 2;
    sorted.into_iter().nth(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_in_the_middle_it_is_the_mean() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median([]), None);
        assert_eq!(
            middle_by([4_u32, 1, 3, 2], |count| f64::from(*count)),
            Some(3)
        );
        assert_eq!(
            middle_by(Vec::<u32>::new(), |count| f64::from(*count)),
            None
        );
    }
}
