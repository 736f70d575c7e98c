// Count the hit of a page with {% insert_hit_count_js_variables for object %}.
jQuery(function ($) {
  if (typeof hitcountJS !== 'undefined') {
    $.post(hitcountJS.hitcountURL, { hitcountPK: hitcountJS.hitcountPK });
  }
});
